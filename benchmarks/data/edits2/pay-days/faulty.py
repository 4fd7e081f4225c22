"""Names the days on which wages are paid."""

from calendar import monthrange
from datetime import date, timedelta

from pydantic import BaseModel, Field

TOOL = {
    "name": "pay_days",
    "description": "The pay days of so many months, from the month of a date on: the day that is named, or the last one of a shorter month; where that is a weekend or a holiday, the last working day before it",
    "effects": ["pure"],
    "dependencies": [],
}


class Input(BaseModel):
    start: date = Field(description="Any day of the first month")
    day: int = Field(ge=1, le=31)
    months: int = Field(ge=1, le=240)
    holidays: list[date] = Field([], description="On which nobody works, in any order")


class Output(BaseModel):
    days: list[date]


def in_month(year: int, month: int, day: int) -> date:
    return date(year, month, min(day, monthrange(year, month)[1]))


def working_day(day: date, holidays: set[date]) -> date:
    """The day itself, or the last working day before it."""
    if day.weekday() >= 5:
        day -= timedelta(days=day.weekday() - 4)
    if day in holidays:
        day -= timedelta(days=1)
    return day


def run(input: Input) -> Output:
    holidays = set(input.holidays)
    days = []
    for number in range(input.months):
        years, month = divmod(input.start.month - 1 + number, 12)
        wanted = in_month(input.start.year + years, month + 1, input.day)
        days.append(working_day(wanted, holidays))
    return Output(days=days)
