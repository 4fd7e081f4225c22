"""agentos: a daemon that runs agents and repairs, by measurement, what makes them fail."""

__version__ = "0.4.0"
