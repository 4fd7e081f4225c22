"""What the program changed in itself."""
