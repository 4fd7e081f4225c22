"""Finds the tools, skills and memories of a snapshot that fit a text: BM25, or with vectors beside it."""
