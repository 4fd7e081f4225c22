"""Strategies that turn evidence into edits."""
