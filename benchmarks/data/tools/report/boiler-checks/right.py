"""Plans the checks of boilers."""

from datetime import date
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "boiler_checks",
    "description": "The next check of each boiler on a day or after it, where checks come every so many years after the first one, and on 28 February where a first check on 29 February has no such day; the checks that come within a given number of days, the soonest first, and how many checks each boiler has had before that day",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="Lines of the form: boiler;yyyy-mm-dd of the first check;years between two checks")
    on: date = Field(description="The day that is asked about")
    within: int = Field(30, ge=0, description="Days within which a check is soon")


class Output(BaseModel):
    next: dict[str, str]
    soon: list[str]
    had: dict[str, int]


def check_day(first: date, years: int) -> date:
    try:
        return first.replace(year=first.year + years)
    except ValueError:
        return first.replace(year=first.year + years, day=28)


def next_check(first: date, every: int, on: date) -> tuple[date, int]:
    """The day, and the number of checks before it."""
    number = 0
    while check_day(first, number * every) < on:
        number += 1
    return check_day(first, number * every), number


def run(input: Input) -> Output:
    days: dict[str, date] = {}
    had = {}
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if line.strip():
            boiler, first, every = (part.strip() for part in line.split(";"))
            days[boiler], had[boiler] = next_check(date.fromisoformat(first), int(every), input.on)
    soon = [boiler for boiler, day in days.items() if (day - input.on).days <= input.within]
    return Output(
        next={boiler: day.isoformat() for boiler, day in days.items()},
        soon=sorted(soon, key=lambda boiler: days[boiler]),
        had=had,
    )
