"""Hourly means of the wind."""

import csv
import math
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "wind_mean",
    "description": "Mean wind direction, as one of 16 points, and mean speed for each hour of a station's readings",
    "effects": ["read"],
    "dependencies": [],
}

POINTS = "N NNE NE ENE E ESE SE SSE S SSW SW WSW W WNW NW NNW".split()


class Input(BaseModel):
    path: str = Field(description="CSV with time (HH:MM), degrees and knots")
    gale: int = Field(34, description="Knots from which an hour counts as a gale")


class Output(BaseModel):
    directions: dict[str, str]
    speeds: dict[str, float]
    gales: list[str]


def mean_direction(degrees: list[float]) -> str:
    """The point of the compass in the middle of some directions; calm where there is none."""
    if not degrees:
        return "calm"
    east = sum(math.sin(math.radians(value)) for value in degrees)
    north = sum(math.cos(math.radians(value)) for value in degrees)
    middle = math.degrees(math.atan2(east, north)) % 360
    return POINTS[round(middle / 22.5) % len(POINTS)]


def run(input: Input) -> Output:
    hours: dict[str, list[tuple[float, float]]] = {}
    with Path(input.path).open(newline="", encoding="utf-8") as handle:
        for row in csv.DictReader(handle):
            hours.setdefault(row["time"][:2], []).append((float(row["degrees"]), float(row["knots"])))
    speeds = {hour: sum(knots for _, knots in pairs) / len(pairs) for hour, pairs in hours.items()}
    return Output(
        directions={
            hour: mean_direction([degrees for degrees, knots in pairs if knots > 0])
            for hour, pairs in hours.items()
        },
        speeds={hour: round(speed, 1) for hour, speed in speeds.items()},
        gales=[hour for hour, pairs in hours.items() if max(knots for _, knots in pairs) >= input.gale],
    )
