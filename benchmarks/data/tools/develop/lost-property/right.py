"""Keeps the list of a lost property office."""

from datetime import date
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "lost_property",
    "description": "What an office still keeps of the things that were found and not fetched, what it gives away on a given day because it was found more than so many days before, and how many things were fetched",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="Lines in the order of the days: day;found;number;thing, or: day;fetched;number;")
    day: str = Field(description="The day of today, such as 2024-03-31")
    keep: int = Field(28, ge=0, description="So many days a thing is kept at least")


class Output(BaseModel):
    kept: list[str]
    given_away: list[str]
    fetched: int


def run(input: Input) -> Output:
    """Things in the order in which they were found."""
    things: dict[str, tuple[date, str]] = {}
    fetched = 0
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if not line.strip():
            continue
        day, event, number, thing = (part.strip() for part in line.split(";"))
        if event == "found":
            things[number] = (date.fromisoformat(day), thing)
        else:
            del things[number]
            fetched += 1
    today = date.fromisoformat(input.day)
    given_away = []
    for number in list(things):
        found, thing = things[number]
        if (today - found).days > input.keep:
            given_away.append(f"{number} {thing}")
            del things[number]
    kept = [f"{number} {thing}" for number, (_, thing) in things.items()]
    return Output(kept=kept, given_away=given_away, fetched=fetched)
