"""Ages in a walking group."""

from datetime import date
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "walking_group",
    "description": "The ages of the members of a walking group on a day, how many of them are children (below 16), adults and seniors (65 and above), and the oldest one (the first of several); years of birth have two digits, and nobody is 100 or born after the year of that day",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="Lines of the form: name;dd.mm.yy")
    on: date = Field(description="The day on which the ages are wanted")


class Output(BaseModel):
    ages: dict[str, int]
    groups: dict[str, int]
    oldest: str | None


def ages_on(lines: list[str], on: date) -> dict[str, int]:
    ages = {}
    for line in lines:
        if not line.strip():
            continue
        name, born = line.split(";")
        day, month, year = (int(part) for part in born.split("."))
        year += 2000
        if year > on.year:
            year -= 100
        had_birthday = (on.month, on.day) >= (month, day)
        ages[name.strip()] = on.year - year - (0 if had_birthday else 1)
    return ages


def group(age: int) -> str:
    if age < 16:
        return "children"
    return "adults" if age < 65 else "seniors"


def run(input: Input) -> Output:
    ages = ages_on(Path(input.path).read_text(encoding="utf-8").splitlines(), input.on)
    groups = {"children": 0, "adults": 0, "seniors": 0}
    for age in ages.values():
        groups[group(age)] += 1
    oldest = max(ages, key=lambda name: ages[name], default=None)
    return Output(ages=ages, groups=groups, oldest=oldest)
