"""What a thermostat with two limits does."""

import csv
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "thermostat_log",
    "description": "When a heating is switched on and off by a thermostat with a lower and an upper limit, and how long it runs",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="CSV with time (HH:MM) and celsius, of one day")
    low: float = 19
    high: float = 21


class Output(BaseModel):
    switches: list[str]
    minutes_on: int
    coldest: float | None


def minutes(text: str) -> int:
    hours, rest = text.split(":")
    return int(hours) * 60 + int(rest)


def run(input: Input) -> Output:
    with Path(input.path).open(newline="", encoding="utf-8") as handle:
        rows = [(row["time"], float(row["celsius"])) for row in csv.DictReader(handle) if row["celsius"]]
    switches: list[str] = []
    on = False
    since = total = 0
    for time, celsius in rows:
        before = on
        on = celsius < input.low
        if on and not before:
            switches.append(f"{time} on")
            since = minutes(time)
        elif before and not on:
            switches.append(f"{time} off")
            total += minutes(time) - since
    if on:
        total += minutes(rows[-1][0]) - since
    coldest = min((celsius for _, celsius in rows), default=None)
    return Output(switches=switches, minutes_on=total, coldest=coldest)
