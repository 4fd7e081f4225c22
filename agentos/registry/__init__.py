"""The git-backed store of everything that may evolve."""
