"""What the panels on the roof brought in."""

import csv
from itertools import pairwise
from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "solar_yield",
    "description": "Kilowatt hours of a day from readings of power; each reading holds until the next one, the last for no time",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str


class Output(BaseModel):
    kwh: float
    peak: str | None
    minutes_on: int


def minutes(clock: str) -> int:
    hour, minute = clock.split(":")
    return int(hour) * 60 + int(minute)


def run(input: Input) -> Output:
    with Path(input.path).open(newline="", encoding="utf-8") as handle:
        readings = [(row["clock"], float(row["watt"])) for row in csv.DictReader(handle, delimiter=";")]
    watt_minutes = 0.0
    minutes_on = 0
    for (clock, watt), (following, _) in pairwise(readings):
        lasted = minutes(following) - minutes(clock)
        watt_minutes += watt * lasted
        if watt > 0:
            minutes_on += lasted
    peak = None
    if readings:
        peak = max(readings, key=lambda reading: reading[1])[0]
    return Output(kwh=round(watt_minutes / 60000, 3), peak=peak, minutes_on=minutes_on)
