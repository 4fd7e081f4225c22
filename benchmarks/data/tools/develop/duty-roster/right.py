"""A roster of weekly duty."""

from datetime import date, timedelta
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "duty_roster",
    "description": "Who is on duty in each week; who is away keeps their place and comes as soon as they are back",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="people: A, B, C and then lines away: A first-day last-day")
    start: date = Field(description="Monday of the first week")
    weeks: int = 4


class Output(BaseModel):
    roster: list[str]
    weeks_each: dict[str, int]


def read(path: str) -> tuple[list[str], list[tuple[str, date, date]]]:
    people: list[str] = []
    away = []
    for line in Path(path).read_text(encoding="utf-8").splitlines():
        head, _, rest = line.partition(":")
        if head == "people":
            people = [name.strip() for name in rest.split(",") if name.strip()]
        elif head == "away":
            name, first, last = rest.split()
            away.append((name, date.fromisoformat(first), date.fromisoformat(last)))
    return people, away


def run(input: Input) -> Output:
    people, away = read(input.path)
    queue = list(people)
    roster = []
    for number in range(input.weeks):
        monday = input.start + timedelta(weeks=number)
        sunday = monday + timedelta(days=6)
        absent = {name for name, first, last in away if first <= sunday and last >= monday}
        here = [name for name in queue if name not in absent]
        if not here:
            roster.append("nobody")
            continue
        queue.remove(here[0])
        queue.append(here[0])
        roster.append(here[0])
    return Output(roster=roster, weeks_each={name: roster.count(name) for name in people})
