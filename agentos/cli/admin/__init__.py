"""The home and its daemon, kept up."""
