"""Splits a lease into months."""

from datetime import date

from pydantic import BaseModel, Field

TOOL = {
    "name": "rent_periods",
    "description": "What is to be paid for each month of a lease that may begin and end within a month: the rent, or its share by days, rounded half up to whole cents; and the sum",
    "effects": ["pure"],
    "dependencies": [],
}


class Input(BaseModel):
    start: date
    end: date = Field(description="The last day that is paid for")
    rent: int = Field(ge=0, description="Cents for a whole month")


class Period(BaseModel):
    month: str
    days: int
    cents: int


class Output(BaseModel):
    periods: list[Period]
    total: int


def month_after(day: date) -> date:
    """The first day of the month that follows a day's."""
    return date(day.year + day.month // 12, day.month % 12 + 1, 1)


def run(input: Input) -> Output:
    """A lease that ends before it begins has no periods."""
    periods = []
    first = input.start
    while first <= input.end:
        following = month_after(first)
        length = (following - first.replace(day=1)).days
        days = min(following.toordinal(), input.end.toordinal() + 1) - first.toordinal()
        cents = (2 * input.rent * days + length) // (2 * length)
        periods.append(Period(month=f"{first:%Y-%m}", days=days, cents=cents))
        first = following
    return Output(periods=periods, total=sum(period.cents for period in periods))
