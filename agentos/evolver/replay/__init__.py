"""The same tasks on base and candidate, in fresh boxes; and the same trials once more from their records."""
