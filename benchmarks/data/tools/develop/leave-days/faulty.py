"""Days of leave in a year."""

import calendar
import math
from datetime import date

from pydantic import BaseModel, Field

TOOL = {
    "name": "leave_days",
    "description": "Days of leave in a year: a twelfth for each full calendar month of employment, rounded up to whole days, less those taken",
    "effects": ["pure"],
    "dependencies": [],
}


class Input(BaseModel):
    year: int
    start: date
    end: date | None = None
    per_year: int = Field(30, ge=0)
    taken: int = Field(0, ge=0)


class Output(BaseModel):
    months: int
    earned: int
    left: int


def full(year: int, month: int, start: date, end: date | None) -> bool:
    """Whether somebody was employed for the whole of a month."""
    first = date(year, month, 1)
    last = first.replace(day=calendar.monthrange(year, month)[1])
    return start <= last and (end is None or end >= last)


def run(input: Input) -> Output:
    months = sum(full(input.year, month, input.start, input.end) for month in range(1, 13))
    earned = math.ceil(input.per_year * months / 12)
    return Output(months=months, earned=earned, left=earned - input.taken)
