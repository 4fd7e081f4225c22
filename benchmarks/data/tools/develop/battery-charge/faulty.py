"""Charge of a battery by counting the current."""

import csv
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "battery_charge",
    "description": "The charge of a battery after each current that flowed for a time, in percent of its capacity",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="CSV with amps (positive: charging) and minutes")
    capacity: float = Field(description="Ampere hours", gt=0)
    start: float = Field(50.0, description="Percent")


class Output(BaseModel):
    percent: list[float]
    wasted: float = Field(description="Ampere hours that the full battery could not take")


def run(input: Input) -> Output:
    charge = input.capacity * input.start / 100
    wasted = 0.0
    percent: list[float] = []
    with Path(input.path).open(newline="", encoding="utf-8") as handle:
        for row in csv.DictReader(handle):
            charge += float(row["amps"]) * float(row["minutes"]) / 60
            wasted = max(wasted, charge - input.capacity)
            held = min(max(charge, 0.0), input.capacity)
            percent.append(round(100 * held / input.capacity, 1))
    return Output(percent=percent, wasted=round(wasted, 2))
