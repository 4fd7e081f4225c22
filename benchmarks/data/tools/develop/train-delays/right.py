"""Delays of trains and the share that counts as punctual."""

import csv
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "train_delays",
    "description": "Minutes of delay of trains, and the share of them that came less than six minutes late, in percent",
    "effects": ["read"],
    "dependencies": [],
}

LATE = 6
DAY = 24 * 60


class Input(BaseModel):
    path: str = Field(description="CSV with train, due and came as HH:MM; came is empty for a cancelled train")


class Output(BaseModel):
    delays: dict[str, int]
    punctual: float


def minutes(clock: str) -> int:
    hour, minute = clock.split(":")
    return int(hour) * 60 + int(minute)


def run(input: Input) -> Output:
    """A train may come up to twelve hours late, or early."""
    delays: dict[str, int] = {}
    cancelled = 0
    with Path(input.path).open(newline="", encoding="utf-8") as handle:
        for row in csv.DictReader(handle):
            if not row["came"].strip():
                cancelled += 1
                continue
            late = minutes(row["came"]) - minutes(row["due"])
            delays[row["train"]] = (late + DAY // 2) % DAY - DAY // 2
    trains = len(delays) + cancelled
    good = sum(late < LATE for late in delays.values())
    return Output(delays=delays, punctual=round(100 * good / trains, 1) if trains else 100.0)
