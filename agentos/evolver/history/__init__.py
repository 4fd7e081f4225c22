"""What earlier runs and evolutions left on record: recordings, what proposers achieved, what was observed."""
