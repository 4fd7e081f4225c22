"""What is sent into a box: the bundle of a snapshot, what an agent gets of it, and the protocol."""
