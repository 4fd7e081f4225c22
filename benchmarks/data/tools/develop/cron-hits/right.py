"""Days on which the jobs of a crontab run."""

from datetime import date, timedelta
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "cron_hits",
    "description": "On which days of a span each line of a crontab runs, and how many runs that makes",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="minute hour day month weekday command; # begins a remark")
    start: date
    days: int = 7


class Output(BaseModel):
    days: dict[str, list[str]] = Field(description="Days of each command, as MM-DD")
    runs: int


def values(field: str, low: int, high: int) -> set[int]:
    """The numbers that a field means: *, 5, 1-5, */10, 0-30/10, and lists of these."""
    found: set[int] = set()
    for part in field.split(","):
        span, _, step = part.partition("/")
        first, _, last = span.partition("-")
        if span == "*":
            first, last = str(low), str(high)
        found.update(range(int(first), int(last or first) + 1, int(step or 1)))
    return found


def runs_on(day: date, fields: list[str]) -> bool:
    if day.month not in values(fields[3], 1, 12):
        return False
    by_date = day.day in values(fields[2], 1, 31)
    by_week = day.isoweekday() % 7 in {number % 7 for number in values(fields[4], 0, 6)}
    if fields[2] != "*" and fields[4] != "*":
        return by_date or by_week
    return by_date and by_week


def run(input: Input) -> Output:
    span = [input.start + timedelta(days=number) for number in range(input.days)]
    days: dict[str, list[str]] = {}
    runs = 0
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        *fields, command = line.split(maxsplit=5)
        hits = [day for day in span if runs_on(day, fields)]
        days[command] = [day.strftime("%m-%d") for day in hits]
        runs += len(hits) * len(values(fields[0], 0, 59)) * len(values(fields[1], 0, 23))
    return Output(days=days, runs=runs)
