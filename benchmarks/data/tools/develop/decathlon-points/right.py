"""Points of combined events: A * (B - T)^C on the track, A * (M - B)^C in the field."""

import csv
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "decathlon_points",
    "description": "Points of athletes for the events of a combined competition",
    "effects": ["read"],
    "dependencies": [],
}

TRACK = {"100m": (25.4347, 18.0, 1.81), "400m": (1.53775, 82.0, 1.81)}
JUMPS = {"long": (0.14354, 220.0, 1.4), "high": (0.8465, 75.0, 1.42)}  # in centimetres
THROWS = {"shot": (51.39, 1.5, 1.05), "javelin": (10.14, 7.0, 1.08)}  # in metres


class Input(BaseModel):
    path: str = Field(description="CSV with athlete, event and mark (seconds or metres)")


class Output(BaseModel):
    points: dict[str, int]
    leader: str


def score(event: str, mark: float) -> int:
    if event in TRACK:
        a, b, c = TRACK[event]
        margin = b - mark
    elif event in JUMPS:
        a, b, c = JUMPS[event]
        margin = mark * 100 - b
    else:
        a, b, c = THROWS[event]
        margin = mark - b
    return int(a * margin**c) if margin > 0 else 0


def run(input: Input) -> Output:
    points: dict[str, int] = {}
    with Path(input.path).open(newline="", encoding="utf-8") as handle:
        for row in csv.DictReader(handle):
            name = row["athlete"]
            points[name] = points.get(name, 0) + score(row["event"], float(row["mark"]))
    leader = max(points, key=lambda name: points[name]) if points else ""
    return Output(points=points, leader=leader)
