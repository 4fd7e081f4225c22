"""Runs of other systems in, training data and spans out: conversations, whatever form they come in."""
