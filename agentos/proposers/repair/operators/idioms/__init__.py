"""Edits that know a piece of the library or of usage: presence, limits, rounding, sort keys, patterns, templates."""
