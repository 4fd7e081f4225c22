"""Waiting times at counters."""

import csv
import heapq
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "queue_wait",
    "description": "How long each customer waits at some counters that serve in the order of arrival",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="CSV with ticket, arrived (HH:MM) and minutes, in the order of arrival")
    counters: int = Field(1, ge=1)


class Output(BaseModel):
    waits: dict[str, int] = Field(description="Minutes, for those who had to wait")
    mean: float
    closed: str = Field(description="When the last customer is done")


def to_minutes(text: str) -> int:
    hours, minutes = text.split(":")
    return int(hours) * 60 + int(minutes)


def run(input: Input) -> Output:
    with Path(input.path).open(newline="", encoding="utf-8") as handle:
        rows = list(csv.DictReader(handle))
    if not rows:
        return Output(waits={}, mean=0, closed="")
    opens = to_minutes(rows[0]["arrived"])
    free = [opens] * input.counters
    waits: dict[str, int] = {}
    last = opens
    for row in rows:
        arrived = to_minutes(row["arrived"])
        start = max(arrived, heapq.heappop(free))
        done = start + int(row["minutes"])
        heapq.heappush(free, done)
        last = max(last, done)
        waits[row["ticket"]] = start - arrived
    return Output(
        waits={ticket: wait for ticket, wait in waits.items() if wait > 0},
        mean=round(sum(waits.values()) / len(waits), 2),
        closed=f"{last // 60:02d}:{last % 60:02d}",
    )
