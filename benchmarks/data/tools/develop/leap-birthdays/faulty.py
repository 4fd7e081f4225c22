"""Whose birthday is next."""

from datetime import date

from pydantic import BaseModel

TOOL = {
    "name": "leap_birthdays",
    "description": "The next birthday on or after a day for each person, the age reached then and the days to it, soonest first; who was born on 29 February celebrates on 1 March in years without that day",
    "effects": ["pure"],
    "dependencies": [],
}


class Input(BaseModel):
    born: dict[str, str]
    day: str


class Output(BaseModel):
    next: list[str]
    ages: dict[str, int]
    days: dict[str, int]


def birthday(born: date, year: int) -> date:
    return date(year, born.month, born.day)


def run(input: Input) -> Output:
    """Dates are YYYY-MM-DD; birthdays of one day in the order of names."""
    day = date.fromisoformat(input.day)
    coming: list[tuple[date, str]] = []
    ages = {}
    for name, text in input.born.items():
        born = date.fromisoformat(text)
        when = birthday(born, day.year)
        if when < day:
            when = birthday(born, day.year + 1)
        coming.append((when, name))
        ages[name] = when.year - born.year
    coming.sort()
    return Output(
        next=[f"{when.isoformat()} {name}" for when, name in coming],
        ages=ages,
        days={name: (when - day).days for when, name in coming},
    )
