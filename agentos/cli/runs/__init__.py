"""What was done: runs, what people say of them, and runs of other systems."""
