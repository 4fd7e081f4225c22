"""Fines of a library, in cents."""

import csv
from datetime import date
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "library_fines",
    "description": "Fines for books that came back late",
    "effects": ["read"],
    "dependencies": [],
}

MAXIMUM = 500  # for one book


class Input(BaseModel):
    path: str = Field(description="CSV: reader,title,due,returned with ISO dates")
    per_day: int = Field(20, description="Cents for each day late")


class Output(BaseModel):
    fines: dict[str, int]
    total: int
    late_books: int


def fine(due: date, returned: date, per_day: int) -> int:
    days = (returned - due).days
    return min(max(days, 0) * per_day, MAXIMUM)


def run(input: Input) -> Output:
    fines: dict[str, int] = {}
    late = 0
    with Path(input.path).open(newline="", encoding="utf-8") as handle:
        for row in csv.DictReader(handle):
            amount = fine(date.fromisoformat(row["due"]), date.fromisoformat(row["returned"]), input.per_day)
            if amount == 0:
                continue
            late += 1
            fines[row["reader"]] = fines.get(row["reader"], 0) + amount
    return Output(fines=fines, total=sum(fines.values()), late_books=late)
