"""The ages of members."""

from datetime import date, datetime
from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "member_births",
    "description": "How old the members of a club are on a day, and how many are children, adults and seniors, from a list with dates of birth such as 07.03.54, whose years have two digits: nobody is born after the day, and nobody is older than 99",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str
    day: str
    adult: int = 18
    senior: int = 65


class Output(BaseModel):
    ages: dict[str, int]
    groups: dict[str, int]
    oldest: str | None


def birth(text: str, today: date) -> date:
    found = datetime.strptime(text.strip(), "%d.%m.%y").date()
    year = today.year - (today.year - found.year) % 100
    if (year, found.month, found.day) > (today.year, today.month, today.day):
        year -= 100
    return found.replace(year=year)


def run(input: Input) -> Output:
    """Lines: name, a comma, date of birth. Of equally old members the first in the list is the oldest."""
    today = date.fromisoformat(input.day)
    ages: dict[str, int] = {}
    groups = {"children": 0, "adults": 0, "seniors": 0}
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if not line.strip():
            continue
        name, _, text = line.rpartition(",")
        born = birth(text, today)
        age = today.year - born.year - ((today.month, today.day) < (born.month, born.day))
        ages[name.strip()] = age
        group = "children" if age < input.adult else "seniors" if age >= input.senior else "adults"
        groups[group] += 1
    oldest = max(ages, key=lambda name: ages[name], default=None)
    return Output(ages=ages, groups=groups, oldest=oldest)
