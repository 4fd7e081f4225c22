"""What is to be done: tasks, schedules and quick questions."""
