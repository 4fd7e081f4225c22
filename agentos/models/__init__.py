"""What is known of models and their calls without asking one: pure, and quick to import.

Model resources, the canonical form by which recorded calls are found again, what is wrong with a
reply, and secrets: how keys are read, and how they are kept out of everything that is stored.
"""
