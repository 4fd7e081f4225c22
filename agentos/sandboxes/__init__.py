"""Single-use boxes in which untrusted code runs."""
