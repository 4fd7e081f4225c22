"""Boxes on other hosts: a worker opens them, the control process holds the other end of their channels."""
