"""Evenings on the nth weekday."""

from datetime import date, timedelta

from pydantic import BaseModel

TOOL = {
    "name": "club_evenings",
    "description": "The dates of a club's evenings, on the first to fourth or on the last of a weekday in each of the given months (-1 for the last)",
    "effects": ["pure"],
    "dependencies": [],
}


class Input(BaseModel):
    year: int
    months: list[int]
    nth: int
    weekday: str


class Output(BaseModel):
    dates: list[str]
    days_apart: list[int]


DAYS = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"]


def first_of(year: int, month: int, weekday: int) -> date:
    start = date(year, month, 1)
    ahead = weekday - start.weekday()
    if ahead < 0:
        ahead += 7
    return start + timedelta(days=ahead)


def run(input: Input) -> Output:
    """Months in the given order; between two evenings the days are counted, backwards below zero."""
    weekday = DAYS.index(input.weekday.lower()[:3])
    found = []
    for month in input.months:
        day = first_of(input.year, month, weekday)
        if input.nth > 0:
            day += timedelta(weeks=input.nth - 1)
        else:
            while (day + timedelta(weeks=1)).month == month:
                day += timedelta(weeks=1)
        found.append(day)
    apart = [(after - before).days for before, after in zip(found, found[1:], strict=False)]
    return Output(dates=[day.isoformat() for day in found], days_apart=apart)
