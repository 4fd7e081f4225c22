"""One task: its attempts, each a conversation with a box and a grade."""
