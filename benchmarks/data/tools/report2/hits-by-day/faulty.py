"""Visits of a site by day."""

from collections import defaultdict
from datetime import date, datetime
from pathlib import Path
from typing import NamedTuple

from pydantic import BaseModel, Field

TOOL = {
    "name": "hits_by_day",
    "description": "How many requests a site had on each day of UTC, in the order of the days, and how many of them failed; each line tells its time with the offset of the server that wrote it",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="Lines of the form: time, page and status")


class Day(BaseModel):
    day: str
    hits: int
    failed: int


class Output(BaseModel):
    days: list[Day]
    busiest: str


class Hit(NamedTuple):
    day: date
    page: str
    status: int


def parse(line: str) -> Hit:
    when, page, status = line.split()
    moment = datetime.fromisoformat(when)
    return Hit(moment.date(), page, int(status))


def run(input: Input) -> Output:
    by_day: dict[date, list[Hit]] = defaultdict(list)
    with open(input.path, encoding="utf-8") as lines:
        for line in lines:
            if line.strip():
                hit = parse(line)
                by_day[hit.day].append(hit)
    days = [
        Day(day=day.isoformat(), hits=len(hits), failed=sum(hit.status >= 400 for hit in hits))
        for day, hits in sorted(by_day.items())
    ]
    busiest = max(days, key=lambda day: day.hits).day if days else ""
    return Output(days=days, busiest=busiest)
