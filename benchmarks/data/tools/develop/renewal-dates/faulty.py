"""The days on which a subscription is renewed."""

from calendar import monthrange
from datetime import date

from pydantic import BaseModel, Field

TOOL = {
    "name": "renewal_dates",
    "description": "On which days a subscription is renewed until a day: each month or every few months on the day on which it began, or the month's last day where there is no such day; and the next one after that day",
    "effects": ["pure"],
    "dependencies": [],
}


class Input(BaseModel):
    start: date
    until: date
    every: int = Field(1, ge=1, description="Months between two renewals")
    paused: list[date] = Field([], description="Days on which a renewal is left out")


class Output(BaseModel):
    days: list[str]
    left_out: int
    next: str


def months_after(day: date, months: int) -> date:
    """The same day some months later, or the last one of a shorter month."""
    index = day.year * 12 + day.month - 1 + months
    year, month = index // 12, index % 12 + 1
    return date(year, month, min(day.day, monthrange(year, month)[1]))


def run(input: Input) -> Output:
    days: list[str] = []
    left_out = 0
    day = months_after(input.start, input.every)
    while day <= input.until:
        if day in input.paused:
            left_out += 1
        else:
            days.append(day.isoformat())
        day = months_after(day, input.every)
    return Output(days=days, left_out=left_out, next=day.isoformat())
