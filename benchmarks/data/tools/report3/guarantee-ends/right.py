"""Ends of guarantees."""

from calendar import monthrange
from datetime import date
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "guarantee_ends",
    "description": "Days on which guarantees end: so many months after the purchase, on the last day of a month that is shorter",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="Lines of the form: what, day of purchase (YYYY-MM-DD), months")
    on: date = Field(description="Today")


class Output(BaseModel):
    ends: dict[str, date]
    over: list[str]


def months_later(day: date, months: int) -> date:
    years, month = divmod(day.month - 1 + months, 12)
    year, month = day.year + years, month + 1
    return date(year, month, min(day.day, monthrange(year, month)[1]))


def run(input: Input) -> Output:
    ends: dict[str, date] = {}
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if line.count(",") != 2:
            continue
        what, bought, months = (part.strip() for part in line.split(","))
        ends[what] = months_later(date.fromisoformat(bought), int(months))
    return Output(ends=ends, over=[what for what, end in ends.items() if end < input.on])
