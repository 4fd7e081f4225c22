"""Guards for edits: read off their text, and tried in boxes."""
