"""Boxes forked from a template inside bubblewrap."""
