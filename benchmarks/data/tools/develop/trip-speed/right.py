"""Speeds of trips."""

from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "trip_speed",
    "description": "The mean speed in km/h by each vehicle and over all trips, from lines with the way in km and the time in minutes: all the way in all the time",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str


class Output(BaseModel):
    speeds: dict[str, float]
    overall: float | None
    fastest: str | None


def run(input: Input) -> Output:
    """Lines: vehicle, km, minutes. Speeds to one place; a trip of no minutes was not made, and is passed over."""
    way: dict[str, float] = {}
    spent: dict[str, float] = {}
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if not line.strip():
            continue
        vehicle, text, minutes = (cell.strip() for cell in line.split(","))
        if float(minutes) == 0:
            continue
        way[vehicle] = way.get(vehicle, 0.0) + float(text)
        spent[vehicle] = spent.get(vehicle, 0.0) + float(minutes) / 60
    speeds = {vehicle: round(way[vehicle] / spent[vehicle], 1) for vehicle in sorted(way)}
    overall = round(sum(way.values()) / sum(spent.values()), 1) if way else None
    fastest = max(speeds, key=lambda vehicle: speeds[vehicle], default=None)
    return Output(speeds=speeds, overall=overall, fastest=fastest)
