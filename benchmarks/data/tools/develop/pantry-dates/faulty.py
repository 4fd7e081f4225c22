"""Best-before dates of a pantry."""

import csv
from datetime import date, timedelta
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "pantry_dates",
    "description": "What in a pantry is past its best-before date on a day (the date itself is still good), and what will be within some days; a date without a day (2026-07) means the last day of that month",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="CSV with item and best_before")
    on: date
    days: int = Field(7, ge=0)


class Output(BaseModel):
    past: list[str]
    soon: list[str]
    next_date: date | None = Field(description="The earliest date that is not past")


def best_before(text: str) -> date:
    if text.count("-") == 1:
        text += "-01"
    return date.fromisoformat(text)


def run(input: Input) -> Output:
    with Path(input.path).open(encoding="utf-8", newline="") as file:
        dates = {row["item"]: best_before(row["best_before"].strip()) for row in csv.DictReader(file)}
    until = input.on + timedelta(days=input.days)
    return Output(
        past=sorted(item for item, day in dates.items() if day < input.on),
        soon=sorted(item for item, day in dates.items() if input.on <= day <= until),
        next_date=min((day for day in dates.values() if day >= input.on), default=None),
    )
