"""Use of water from the readings of a meter."""

import csv
from datetime import date
from itertools import pairwise
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "meter_run",
    "description": "Use between the readings of a meter with so many digits, which starts again at zero, and the highest use a day",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str
    digits: int = Field(5, description="digits of the meter")


class Output(BaseModel):
    uses: list[int]
    total: int
    highest_a_day: float | None


def readings(path: str) -> list[tuple[date, int]]:
    with Path(path).open(newline="", encoding="utf-8") as handle:
        rows = csv.DictReader(handle)
        return sorted((date.fromisoformat(row["day"]), int(row["reading"])) for row in rows)


def run(input: Input) -> Output:
    uses = []
    a_day = []
    known = readings(input.path)
    for (start, before), (end, after) in pairwise(known):
        used = after - before
        if used < 0:
            used += 10**input.digits
        uses.append(used)
        a_day.append(used / (end - start).days)
    return Output(
        uses=uses,
        total=sum(uses),
        highest_a_day=round(max(a_day), 2) if a_day else None,
    )
