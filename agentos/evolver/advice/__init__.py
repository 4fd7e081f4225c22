"""Asking a model for edits and reviews: what it is told, and how its reply is read."""
