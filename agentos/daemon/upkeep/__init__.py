"""A home kept whole: audits, backups, leftovers, what may go, and whether the daemon works."""
