"""The jobs that a box is given, one file each, and what only they need."""
