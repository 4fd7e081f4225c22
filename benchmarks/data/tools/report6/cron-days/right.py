"""Jobs of a crontab on one day."""

from datetime import date
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "cron_days",
    "description": "Jobs of a crontab that run on a day, by their time, and how often each runs in a week; Sunday is 0 or 7",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="A crontab: minute, hour, *, *, weekdays and the command")
    day: str = Field(description="YYYY-MM-DD")


class Output(BaseModel):
    jobs: list[str]
    per_week: dict[str, int]


def weekdays(field: str) -> set[int]:
    """The weekdays of a field such as 1-5, 0,6 or */2; Sunday is 0."""
    found = set()
    for part in field.split(","):
        span, _, step = part.partition("/")
        if span == "*":
            low, high = 0, 6
        elif "-" in span:
            low, high = map(int, span.split("-"))
        else:
            low = high = int(span)
        for number in range(low, high + 1, int(step or 1)):
            found.add(number % 7)
    return found


def run(input: Input) -> Output:
    today = date.fromisoformat(input.day).isoweekday() % 7
    due = []
    per_week = {}
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        minute, hour, _, _, field, command = line.split(None, 5)
        days = weekdays(field)
        per_week[command] = len(days)
        if today in days:
            due.append((int(hour), int(minute), command))
    return Output(
        jobs=[f"{hour:02d}:{minute:02d} {command}" for hour, minute, command in sorted(due)],
        per_week=per_week,
    )
