"""Hours and pay from a list of shifts."""

import csv
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "shift_wages",
    "description": "Minutes and pay of people from a list of shifts, in cents; the ninth hour of a shift and later ones count half as much again",
    "effects": ["read"],
    "dependencies": [],
}
DAY = 24 * 60
NORMAL = 8 * 60


class Input(BaseModel):
    path: str = Field(description="CSV with name, day, start, end (HH:MM) and break in minutes")
    rate: int = Field(description="Cents an hour")


class Output(BaseModel):
    minutes: dict[str, int]
    pay: dict[str, int]
    longest: str | None


def minute(text: str) -> int:
    """The minute of the day."""
    hours, minutes = text.split(":")
    return int(hours) * 60 + int(minutes)


def worked(row: dict[str, str]) -> int:
    start, end = minute(row["start"]), minute(row["end"])
    return end - start - int(row["break"] or 0)


def run(input: Input) -> Output:
    minutes: dict[str, int] = {}
    weighted: dict[str, int] = {}
    longest = (0, "")
    with Path(input.path).open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            name, time = row["name"], worked(row)
            minutes[name] = minutes.get(name, 0) + time
            extra = max(0, time - NORMAL)
            weighted[name] = weighted.get(name, 0) + 2 * time + extra
            longest = max(longest, (time, f"{row['day']} {name}"))
    return Output(
        minutes=minutes,
        pay={name: halves * input.rate // 120 for name, halves in weighted.items()},
        longest=longest[1] or None,
    )
