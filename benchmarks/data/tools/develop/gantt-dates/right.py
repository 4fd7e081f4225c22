"""Dates of a project's tasks."""

from datetime import date, timedelta
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "gantt_dates",
    "description": "Begin and end of the tasks of a project, which take working days and wait for others",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="Lines: task; working days; tasks before it, divided by commas. Those come first in the file")
    start: str = Field(description="YYYY-MM-DD; a Saturday or Sunday means the Monday after it")


class Output(BaseModel):
    dates: dict[str, tuple[str, str]]
    end: str


def workday(day: date) -> date:
    """The day, or the Monday after it."""
    while day.weekday() > 4:
        day += timedelta(days=1)
    return day


def last_day(begin: date, days: int) -> date:
    day = begin
    for _ in range(days - 1):
        day = workday(day + timedelta(days=1))
    return day


def run(input: Input) -> Output:
    start = workday(date.fromisoformat(input.start))
    ends: dict[str, date] = {}
    dates: dict[str, tuple[str, str]] = {}
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if not line.strip():
            continue
        task, days, before = (part.strip() for part in line.split(";"))
        begin = start
        for other in filter(None, (name.strip() for name in before.split(","))):
            begin = max(begin, workday(ends[other] + timedelta(days=1)))
        ends[task] = last_day(begin, int(days))
        dates[task] = (begin.isoformat(), ends[task].isoformat())
    return Output(dates=dates, end=max(ends.values(), default=start).isoformat())
