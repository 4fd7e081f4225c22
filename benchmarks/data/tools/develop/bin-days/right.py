"""Days on which bins are emptied."""

from datetime import date, timedelta
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "bin_days",
    "description": "When the bins of a street are emptied: every so many weeks, a day later in a week with a holiday before it",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="Lines: bin; first day (YYYY-MM-DD); weeks between")
    holidays: list[str]
    until: str


class Output(BaseModel):
    days: list[str] = Field(description="Day and bin, in the order of the days")


def shifted(day: date, holidays: set[date]) -> date:
    """A day later where the day itself, or one before it in its week, is a holiday."""
    monday = day - timedelta(days=day.weekday())
    week = {monday + timedelta(days=past) for past in range(day.weekday() + 1)}
    return day + timedelta(days=1) if week & holidays else day


def run(input: Input) -> Output:
    holidays = {date.fromisoformat(day) for day in input.holidays}
    until = date.fromisoformat(input.until)
    days = []
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if not line.strip():
            continue
        name, first, weeks = (part.strip() for part in line.split(";"))
        day = date.fromisoformat(first)
        while day <= until:
            days.append((shifted(day, holidays).isoformat(), name))
            day += timedelta(weeks=int(weeks))
    return Output(days=[f"{day} {name}" for day, name in sorted(days)])
