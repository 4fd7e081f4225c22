"""Reminders for overdue invoices."""

import csv
from datetime import date
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "dunning_level",
    "description": "Which reminder overdue invoices get: by the days since they were due",
    "effects": ["read"],
    "dependencies": [],
}

LEVELS = [(1, "note", 0.0), (15, "reminder", 5.0), (30, "warning", 10.0), (60, "court", 40.0)]


class Input(BaseModel):
    path: str = Field(description="CSV with invoice, due (YYYY-MM-DD), amount and paid")
    day: str = Field(description="The day of the reminders, YYYY-MM-DD")


class Output(BaseModel):
    levels: dict[str, str]
    demanded: float = Field(description="Open amounts and fees of the invoices named")


def level(days: int) -> tuple[str, float]:
    """The gravest level whose days have passed, and its fee."""
    fitting = [(name, fee) for since, name, fee in LEVELS if days >= since]
    return fitting[-1] if fitting else ("", 0.0)


def run(input: Input) -> Output:
    day = date.fromisoformat(input.day)
    levels: dict[str, str] = {}
    demanded = 0.0
    with Path(input.path).open(newline="", encoding="utf-8") as handle:
        for row in csv.DictReader(handle):
            left = round(float(row["amount"]) - float(row["paid"] or 0), 2)
            name, fee = level((day - date.fromisoformat(row["due"])).days)
            if left <= 0 or not name:
                continue
            levels[row["invoice"]] = name
            demanded += left + fee
    return Output(levels=levels, demanded=round(demanded, 2))
