"""The daemon as a process among others: its lock, its log, systemd."""
