"""Times at which dishes go into the oven."""

import csv
import math
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "roast_start",
    "description": "When each dish has to go into the oven so that all are ready at one time",
    "effects": ["read"],
    "dependencies": [],
}

REST = 15  # minutes a roast of two kilograms or more stands before it is carved


class Input(BaseModel):
    path: str = Field(description="CSV with dish, kg, min_per_kg and extra_min")
    serve: str = Field(description="Time of the meal, HH:MM")


class Output(BaseModel):
    start: dict[str, str]
    first: str
    oven_minutes: int


def minutes(text: str) -> int:
    hours, rest = text.split(":")
    return int(hours) * 60 + int(rest)


def clock(total: int) -> str:
    hours, rest = divmod(total % (24 * 60), 60)
    return f"{hours:02d}:{rest:02d}"


def run(input: Input) -> Output:
    with Path(input.path).open(newline="", encoding="utf-8") as handle:
        rows = list(csv.DictReader(handle))
    serve = minutes(input.serve)
    needs = {}
    for row in rows:
        weight = float(row["kg"])
        cooking = math.ceil(weight * int(row["min_per_kg"])) + int(row["extra_min"])
        needs[row["dish"]] = cooking + (REST if weight >= 2 else 0)
    order = sorted(needs, key=lambda dish: (-needs[dish], dish))
    return Output(
        start={dish: clock(serve - needs[dish]) for dish in order},
        first=order[0] if order else "",
        oven_minutes=max(needs.values(), default=0),
    )
