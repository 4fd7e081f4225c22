"""Which finished runs failed, in which way, and which failures have become evidence."""
