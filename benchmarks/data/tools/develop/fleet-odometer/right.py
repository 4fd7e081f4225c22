"""What vehicles drove."""

import csv
from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "fleet_odometer",
    "description": "The kilometres that each vehicle drove, from the readings of their odometers in the order of the days, the vehicle that drove most, and the longest way between two readings; a reading below the one before of the same vehicle counts no kilometres",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str


class Output(BaseModel):
    driven: dict[str, int]
    most: str | None
    longest: int


def run(input: Input) -> Output:
    """A CSV file with the columns day, vehicle and reading."""
    driven: dict[str, int] = {}
    before: dict[str, int] = {}
    longest = 0
    with Path(input.path).open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            vehicle, reading = row["vehicle"], int(row["reading"])
            driven.setdefault(vehicle, 0)
            way = reading - before.get(vehicle, reading)
            if way > 0:
                driven[vehicle] += way
                longest = max(longest, way)
            before[vehicle] = reading
    most = max(driven, key=lambda vehicle: driven[vehicle], default=None)
    return Output(driven=driven, most=most, longest=longest)
