"""An alarm with hysteresis."""

import csv
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "alarm_latch",
    "description": "Switch an alarm on where a value exceeds one limit, and off only where it falls below a lower one",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="CSV with time and value, in the order of time; a value may be missing")
    high: float
    low: float


class Output(BaseModel):
    events: list[str]
    readings: int = Field(description="Readings while the alarm was on")


def run(input: Input) -> Output:
    """A missing value changes nothing and is no reading."""
    if input.low > input.high:
        raise ValueError("the lower limit is above the upper one")
    events: list[str] = []
    alarm = False
    readings = 0
    with Path(input.path).open(newline="", encoding="utf-8") as handle:
        for row in csv.DictReader(handle):
            if not row["value"].strip():
                continue
            value = float(row["value"])
            now = value > input.high
            if now != alarm:
                events.append(f"{row['time']} {'on' if now else 'off'}")
            alarm = now
            readings += alarm
    return Output(events=events, readings=readings)
