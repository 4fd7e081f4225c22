"""When patients are to come again."""

from datetime import date, timedelta
from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "clinic_recall",
    "description": "The day on which each patient is to come again: so many days after the last visit, or the next day after that on which the practice is open; it is closed on some days of the week (0 is Monday) and on holidays; tells how many come on each day and who has to wait longer",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str
    closed: list[int]
    holidays: list[date] = []


class Output(BaseModel):
    recalls: dict[str, date]
    per_day: dict[str, int]
    later: dict[str, int]


def run(input: Input) -> Output:
    """Lines: patient, last visit, days, with tabulators between them."""
    recalls: dict[str, date] = {}
    later: dict[str, int] = {}
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if not line.strip():
            continue
        patient, visit, days = line.split("\t")
        due = date.fromisoformat(visit) + timedelta(days=int(days))
        day = due
        while day.weekday() in input.closed or day in input.holidays:
            day += timedelta(days=1)
        recalls[patient] = day
        if day > due:
            later[patient] = (day - due).days
    per_day: dict[str, int] = {}
    for day in sorted(recalls.values()):
        per_day[day.isoformat()] = per_day.get(day.isoformat(), 0) + 1
    return Output(recalls=recalls, per_day=per_day, later=later)
