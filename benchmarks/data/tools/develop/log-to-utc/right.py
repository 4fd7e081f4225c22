"""Times of a log in UTC."""

import re
from datetime import datetime, timedelta
from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "log_to_utc",
    "description": "Lines of a log (2026-03-01 09:15 -0330 text) with their time in UTC (2026-03-01T12:45Z text), sorted by it, and how many come to lie on another day; the sign of an offset is that of its hours and minutes",
    "effects": ["read"],
    "dependencies": [],
}

LINE = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d) ([+-])(\d\d):?(\d\d) (.*)")


class Input(BaseModel):
    path: str


class Output(BaseModel):
    lines: list[str]
    other_day: int


def offset(sign: str, hours: str, minutes: str) -> timedelta:
    factor = -1 if sign == "-" else 1
    return factor * timedelta(hours=int(hours), minutes=int(minutes))


def run(input: Input) -> Output:
    found: list[tuple[datetime, str]] = []
    other = 0
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        match = LINE.match(line)
        if match is None:
            continue
        there = datetime.fromisoformat(match[1])
        moment = there - offset(match[2], match[3], match[4])
        other += moment.date() != there.date()
        found.append((moment, match[5]))
    found.sort(key=lambda entry: entry[0])
    return Output(lines=[f"{moment:%Y-%m-%dT%H:%M}Z {text}" for moment, text in found], other_day=other)
