"""Folders of skills, taken in and given back."""
