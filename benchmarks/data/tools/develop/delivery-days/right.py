"""Moves deliveries off Sundays and holidays."""

from datetime import date, timedelta
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "delivery_days",
    "description": "On which day each parcel is delivered: the promised day, or the next that is neither a Sunday nor a holiday; how many come later, and by how many days at most",
    "effects": ["read"],
    "dependencies": [],
}

SUNDAY = 6


class Input(BaseModel):
    path: str = Field(description="Lines of the form: parcel YYYY-MM-DD")
    holidays: list[date] = []


class Output(BaseModel):
    days: dict[str, list[str]]
    late: int
    most: int


def run(input: Input) -> Output:
    days: dict[str, list[str]] = {}
    late = most = 0
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if not line.strip():
            continue
        parcel, promised = line.split()
        day = date.fromisoformat(promised)
        while day.weekday() == SUNDAY or day in input.holidays:
            day += timedelta(days=1)
        days.setdefault(day.isoformat(), []).append(parcel)
        waited = (day - date.fromisoformat(promised)).days
        late += waited > 0
        most = max(most, waited)
    return Output(days=dict(sorted(days.items())), late=late, most=most)
