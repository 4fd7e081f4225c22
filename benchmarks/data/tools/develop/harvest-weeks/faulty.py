"""Adds up a garden's harvest by weeks."""

from datetime import date
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "harvest_weeks",
    "description": "The kilograms that a garden yielded in each ISO week (written such as 2024-W07) and of each crop, and the best week (the earliest of several)",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="Lines of the form: 2024-02-13;crop;kilograms")


class Output(BaseModel):
    weeks: dict[str, float]
    crops: dict[str, float]
    best: str | None


def week_of(day: date) -> str:
    iso = day.isocalendar()
    return f"{day.year}-W{iso.week:02d}"


def run(input: Input) -> Output:
    """Weeks without a harvest are left out."""
    weeks: dict[str, float] = {}
    crops: dict[str, float] = {}
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if not line.strip():
            continue
        day, crop, weight = (part.strip() for part in line.split(";"))
        week = week_of(date.fromisoformat(day))
        weeks[week] = round(weeks.get(week, 0) + float(weight), 2)
        crops[crop] = round(crops.get(crop, 0) + float(weight), 2)
    best = max(sorted(weeks), key=weeks.__getitem__, default=None)
    return Output(weeks=weeks, crops=crops, best=best)
