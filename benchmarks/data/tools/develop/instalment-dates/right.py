"""Monthly due dates."""

import calendar
from datetime import date

from pydantic import BaseModel, Field

TOOL = {
    "name": "instalment_dates",
    "description": "Due dates of instalments: the start, then every so many months on the start's day of the month, or on a month's last day where that is shorter; and the days that they span",
    "effects": ["pure"],
    "dependencies": [],
}


class Input(BaseModel):
    start: date
    every: int = Field(1, ge=1, description="Months from one date to the next")
    count: int = Field(ge=1, le=60)


class Output(BaseModel):
    dates: list[date]
    span: int


def later(start: date, months: int) -> date:
    year, month = divmod(start.year * 12 + start.month - 1 + months, 12)
    last = calendar.monthrange(year, month + 1)[1]
    return start.replace(year=year, month=month + 1, day=min(start.day, last))


def run(input: Input) -> Output:
    dates = [later(input.start, number * input.every) for number in range(input.count)]
    return Output(dates=dates, span=(dates[-1] - dates[0]).days)
