"""Hours of a timesheet, in quarters."""

import csv
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "quarter_hours",
    "description": "Hours worked for each project, each entry rounded to quarters of an hour",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="CSV with project, from and to as HH:MM, and pause in minutes (may be empty)")
    step: int = Field(15, description="Minutes; an entry is rounded to the nearest multiple, halves up")


class Output(BaseModel):
    hours: dict[str, float]
    entries: int


def minutes(clock: str) -> int:
    hour, minute = clock.split(":")
    return int(hour) * 60 + int(minute)


def run(input: Input) -> Output:
    worked: dict[str, int] = {}
    entries = 0
    with Path(input.path).open(newline="", encoding="utf-8") as handle:
        for row in csv.DictReader(handle):
            time = minutes(row["to"]) - minutes(row["from"]) - int(row["pause"] or 0)
            if time <= 0:
                continue
            steps = (2 * time + input.step) // (2 * input.step)
            project = row["project"].strip()
            worked[project] = worked.get(project, 0) + steps * input.step
            entries += 1
    hours = {project: round(time / 60, 2) for project, time in sorted(worked.items())}
    return Output(hours=hours, entries=entries)
