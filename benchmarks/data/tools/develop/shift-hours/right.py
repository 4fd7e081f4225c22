"""Adds up shifts, also those that end on the next day."""

from datetime import datetime, timedelta
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "shift_hours",
    "description": "Hours worked by each nurse",
    "effects": ["read"],
    "dependencies": [],
}

LONG = timedelta(hours=6)


class Input(BaseModel):
    path: str = Field(description="Lines: name start end, such as: Ana 22:00 06:00")
    break_minutes: int = Field(30, description="Taken off every shift of six hours or more")


class Output(BaseModel):
    minutes: dict[str, int]
    shifts: int


def length(start: str, end: str) -> timedelta:
    begun = datetime.strptime(start, "%H:%M")
    ended = datetime.strptime(end, "%H:%M")
    if ended < begun:
        ended += timedelta(days=1)
    return ended - begun


def run(input: Input) -> Output:
    minutes: dict[str, int] = {}
    shifts = 0
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        name, start, end = line.split()
        worked = length(start, end)
        if worked >= LONG:
            worked -= timedelta(minutes=input.break_minutes)
        minutes[name] = minutes.get(name, 0) + int(worked.total_seconds() // 60)
        shifts += 1
    return Output(minutes=minutes, shifts=shifts)
