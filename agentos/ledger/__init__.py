"""The record of tasks, runs, evolutions and decisions."""
