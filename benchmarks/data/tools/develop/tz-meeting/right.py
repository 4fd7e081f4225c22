"""A meeting in everybody's own time."""

from datetime import datetime, timedelta
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "tz_meeting",
    "description": "Local times of a meeting for people with offsets from UTC, and who would have it outside office hours",
    "effects": ["read"],
    "dependencies": [],
}

OPENS, CLOSES = 8 * 60, 18 * 60


class Input(BaseModel):
    path: str = Field(description="Lines of a name and an offset such as +05:30")
    start: str = Field(description="Beginning in UTC, YYYY-MM-DDTHH:MM")
    minutes: int = 60


class Output(BaseModel):
    local: dict[str, str]
    outside: list[str]


def offset(text: str) -> timedelta:
    sign = -1 if text.startswith("-") else 1
    hours, minutes = text.lstrip("+-").split(":")
    return timedelta(minutes=sign * (int(hours) * 60 + int(minutes)))


def in_office(start: datetime, minutes: int) -> bool:
    begins = start.hour * 60 + start.minute
    return start.weekday() < 5 and begins >= OPENS and begins + minutes <= CLOSES


def run(input: Input) -> Output:
    start = datetime.fromisoformat(input.start)
    local, outside = {}, []
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if not line.strip():
            continue
        name, shift = line.rsplit(maxsplit=1)
        there = start + offset(shift)
        local[name] = there.strftime("%Y-%m-%d %H:%M")
        if not in_office(there, input.minutes):
            outside.append(name)
    return Output(local=local, outside=sorted(outside))
