"""Memories as lists of lessons: what changes in them, what runs propose, how they move to a new form."""
