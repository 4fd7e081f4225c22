"""What runs inside a sandbox: knows the wire and the job messages, nothing of the kernel."""
