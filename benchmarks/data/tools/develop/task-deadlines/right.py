"""Sorts tasks by their deadlines."""

import json
from datetime import date, timedelta
from pathlib import Path

from pydantic import BaseModel, TypeAdapter

TOOL = {
    "name": "task_deadlines",
    "description": "The open tasks of a list by when they are due, then by title, those without a date last; which of them are late today, and how many are due within a week",
    "effects": ["read"],
    "dependencies": [],
}


class Task(BaseModel):
    title: str
    due: date | None = None
    done: bool = False


class Input(BaseModel):
    path: str
    today: date


class Output(BaseModel):
    order: list[str]
    late: list[str]
    soon: int


def run(input: Input) -> Output:
    """The file is a JSON list of tasks."""
    listed = json.loads(Path(input.path).read_text(encoding="utf-8"))
    tasks = [task for task in TypeAdapter(list[Task]).validate_python(listed) if not task.done]
    tasks.sort(key=lambda task: (task.due is None, task.due or date.min, task.title))
    late = [task.title for task in tasks if task.due is not None and task.due < input.today]
    week = input.today + timedelta(days=7)
    soon = sum(1 for task in tasks if task.due is not None and input.today <= task.due <= week)
    return Output(order=[task.title for task in tasks], late=late, soon=soon)
