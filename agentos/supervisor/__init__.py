"""Whether a run that is under way is lost: read off its steps as they arrive, and measured on past runs."""
