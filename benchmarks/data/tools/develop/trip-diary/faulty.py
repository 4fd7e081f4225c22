"""Sums of a travel diary."""

import re
from datetime import date, datetime
from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "trip_diary",
    "description": "A travel diary of lines like 07/03/2026 Oslo: 38 km, with the day before the month: kilometres of each month (2026-03), first and last day as ISO dates, and the days between them",
    "effects": ["read"],
    "dependencies": [],
}

LINE = re.compile(r"(\S+)\s+(.+?):\s*([\d.]+)\s*km")


class Input(BaseModel):
    path: str


class Output(BaseModel):
    months: dict[str, float]
    first: date | None
    last: date | None
    days: int


def run(input: Input) -> Output:
    months: dict[str, float] = {}
    days: list[date] = []
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        match = LINE.match(line.strip())
        if match is None:
            continue
        day = datetime.strptime(match[1], "%m/%d/%Y").date()
        days.append(day)
        month = f"{day:%Y-%m}"
        months[month] = round(months.get(month, 0) + float(match[3]), 1)
    first, last = min(days, default=None), max(days, default=None)
    return Output(
        months=dict(sorted(months.items())),
        first=first,
        last=last,
        days=(last - first).days if first and last else 0,
    )
