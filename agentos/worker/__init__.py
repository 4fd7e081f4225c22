"""What runs inside a sandbox: the four jobs, and the sdk that a harness stands on."""
