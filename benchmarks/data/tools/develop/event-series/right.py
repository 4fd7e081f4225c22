"""Dates of repeating events."""

from calendar import monthrange
from datetime import date, timedelta
from typing import Literal

from pydantic import BaseModel, Field

TOOL = {
    "name": "event_series",
    "description": "Dates of an event that repeats",
    "effects": ["pure"],
    "dependencies": [],
}


class Input(BaseModel):
    first: date
    every: Literal["day", "week", "month"]
    count: int = Field(gt=0, le=500)


class Output(BaseModel):
    dates: list[date]
    span_days: int


def months_later(day: date, months: int) -> date:
    """The same day of a later month, or that month's last day if it is shorter."""
    years, month = divmod(day.month - 1 + months, 12)
    year, month = day.year + years, month + 1
    return day.replace(year=year, month=month, day=min(day.day, monthrange(year, month)[1]))


def occurrence(input: Input, number: int) -> date:
    if input.every == "month":
        return months_later(input.first, number)
    step = timedelta(days=1) if input.every == "day" else timedelta(weeks=1)
    return input.first + number * step


def run(input: Input) -> Output:
    dates = [occurrence(input, number) for number in range(input.count)]
    return Output(dates=dates, span_days=(dates[-1] - dates[0]).days)
