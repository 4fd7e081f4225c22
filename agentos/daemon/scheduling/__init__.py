"""When work comes again: by the clock, or for files that arrive."""
