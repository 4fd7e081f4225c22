"""Guards for edits of Python source: read off the text of base and candidate, nothing is executed."""
