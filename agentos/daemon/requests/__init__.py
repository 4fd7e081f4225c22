"""What a run may ask of the kernel while it is under way, and who answers."""
