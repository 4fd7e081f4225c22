"""The long-running process: wires the parts and keeps them going."""
