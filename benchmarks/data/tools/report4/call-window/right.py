"""Calls within opening hours."""

from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "call_window",
    "description": "Which calls fell into the opening hours of a desk in UTC, and on which day of UTC",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="Lines of the form who time, the time with its zone: 2025-03-10T09:30:00+02:00")
    opens: int = Field(8, description="Hour of UTC")
    closes: int = Field(17, description="Hour of UTC, the first in which nobody is there")


class Output(BaseModel):
    answered: list[str]
    missed: list[str]
    days: dict[str, int] = Field(description="answered calls by the day of UTC")


def moment(text: str) -> datetime:
    """The time in UTC."""
    return datetime.fromisoformat(text).astimezone(UTC)


def run(input: Input) -> Output:
    answered, missed = [], []
    days: Counter[str] = Counter()
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if not line.strip():
            continue
        who, text = line.split()
        when = moment(text)
        if input.opens <= when.hour < input.closes:
            answered.append(who)
            days[when.date().isoformat()] += 1
        else:
            missed.append(who)
    return Output(answered=answered, missed=missed, days=dict(sorted(days.items())))
