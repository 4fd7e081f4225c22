"""Reads what is still to be done out of notes."""

import re
from datetime import date
from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "todo_lines",
    "description": "The open tasks of notes (- [ ] water plants @ann due:2024-05-01), the soonest first, those of one day in the order of the notes, those without a day last; of one person only, where one is named",
    "effects": ["read"],
    "dependencies": [],
}
LINE = re.compile(r"\s*[-*] \[( |x|X)\] (.+)")
WHO = re.compile(r"(?<!\S)@([\w-]+)")
DUE = re.compile(r"(?<!\S)due:(\S+)")


class Input(BaseModel):
    path: str
    who: str | None = None


class Task(BaseModel):
    text: str
    who: str | None
    due: date | None


class Output(BaseModel):
    tasks: list[Task]


def parse(line: str) -> Task | None:
    """The open task of a line; a due day that is none is refused."""
    found = LINE.fullmatch(line)
    if found is None or found[1] != " ":
        return None
    who, due = WHO.search(found[2]), DUE.search(found[2])
    text = " ".join(WHO.sub("", DUE.sub("", found[2])).split())
    return Task(text=text, who=who[1] if who else None, due=date.fromisoformat(due[1]) if due else None)


def run(input: Input) -> Output:
    lines = Path(input.path).read_text(encoding="utf-8").splitlines()
    tasks = [task for task in map(parse, lines) if task is not None]
    if input.who is not None:
        tasks = [task for task in tasks if task.who == input.who]
    tasks.sort(key=lambda task: (task.due is None, task.due or date.max))
    return Output(tasks=tasks)
