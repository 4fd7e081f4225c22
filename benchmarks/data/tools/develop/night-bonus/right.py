"""Bonus for night work."""

import csv
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "night_bonus",
    "description": "Minutes of night work (from 22:00 to 6:00) in shifts that may go past midnight, and the bonus for them",
    "effects": ["read"],
    "dependencies": [],
}

DAY = 24 * 60
NIGHTS = ((0, 6 * 60), (22 * 60, DAY + 6 * 60), (DAY + 22 * 60, 2 * DAY))


class Input(BaseModel):
    path: str = Field(description="CSV with name, begin and end as HH:MM; an end not after the begin is on the next day")
    wage: float = Field(description="For an hour")
    percent: float = 25.0


class Output(BaseModel):
    minutes: dict[str, int]
    bonus: dict[str, float]


def clock(text: str) -> int:
    hour, minute = text.split(":")
    return int(hour) * 60 + int(minute)


def night(begin: int, end: int) -> int:
    """Minutes of a shift that lie in a night."""
    return sum(max(0, min(end, until) - max(begin, since)) for since, until in NIGHTS)


def run(input: Input) -> Output:
    minutes: dict[str, int] = {}
    with Path(input.path).open(newline="", encoding="utf-8") as handle:
        for row in csv.DictReader(handle):
            begin, end = clock(row["begin"]), clock(row["end"])
            if end <= begin:
                end += DAY
            minutes[row["name"]] = minutes.get(row["name"], 0) + night(begin, end)
    bonus = {name: round(part / 60 * input.wage * input.percent / 100, 2) for name, part in minutes.items()}
    return Output(minutes=minutes, bonus=bonus)
