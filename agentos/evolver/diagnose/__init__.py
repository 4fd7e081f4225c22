"""Which layer and which file a failure belongs to, and in which order layers are tried."""
