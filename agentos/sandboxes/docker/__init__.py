"""Boxes as containers of their own."""
