"""Schema changes, oldest first; each file is one revision and is never edited after a release."""
