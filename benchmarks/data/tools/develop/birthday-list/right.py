"""Birthdays that come next."""

from datetime import date
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "birthday_list",
    "description": "Birthdays of the days ahead, in their order, with the age that each person will have",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="Lines of the form: name: YYYY-MM-DD")
    day: date = Field(description="The day from which to look ahead; it counts itself")
    ahead: int = Field(60, description="Number of days to look ahead")


class Output(BaseModel):
    coming: list[str]
    round_ones: list[str] = Field(description="Names of those whose age ends in 0")
    later: int


def in_year(born: date, year: int) -> date:
    try:
        return born.replace(year=year)
    except ValueError:
        return date(year, 2, 28)


def next_birthday(born: date, day: date) -> date:
    this_year = in_year(born, day.year)
    return this_year if this_year >= day else in_year(born, day.year + 1)


def run(input: Input) -> Output:
    coming = []
    later = 0
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if not line.strip():
            continue
        name, _, text = line.rpartition(":")
        born = date.fromisoformat(text.strip())
        birthday = next_birthday(born, input.day)
        if (birthday - input.day).days > input.ahead:
            later += 1
        else:
            coming.append((birthday, name.strip(), birthday.year - born.year))
    coming.sort()
    return Output(
        coming=[f"{birthday} {name} ({age})" for birthday, name, age in coming],
        round_ones=[name for _, name, age in coming if age % 10 == 0],
        later=later,
    )
