"""Runs of days with a visit."""

from datetime import date, timedelta

from pydantic import BaseModel, Field

TOOL = {
    "name": "visit_streak",
    "description": "The longest run of days in a row on which a gym was visited, from the dates of all visits in any order (several on a day are one day), its first day (the earliest run of equals), and how many runs reach a goal",
    "effects": ["pure"],
    "dependencies": [],
}


class Input(BaseModel):
    days: list[date]
    goal: int = Field(3, ge=1)


class Output(BaseModel):
    longest: int
    start: date | None
    reached: int


def runs(days: list[date]) -> list[tuple[date, int]]:
    """First day and length of each run."""
    found: list[tuple[date, int]] = []
    for day in sorted(days):
        if found and day == found[-1][0] + timedelta(days=found[-1][1]):
            found[-1] = (found[-1][0], found[-1][1] + 1)
        else:
            found.append((day, 1))
    return found


def run(input: Input) -> Output:
    found = runs(input.days)
    longest = max((length for _, length in found), default=0)
    return Output(
        longest=longest,
        start=next((day for day, length in found if length == longest), None),
        reached=sum(length >= input.goal for _, length in found),
    )
