"""Length of a route along great circles."""

import json
from itertools import pairwise
from math import asin, cos, radians, sin, sqrt
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, Field

TOOL = {
    "name": "route_length",
    "description": "Length of a route over the globe",
    "effects": ["read"],
    "dependencies": [],
}

RADIUS_KM = 6371.0
KM_PER_MILE = 1.609344


class Input(BaseModel):
    path: str = Field(description="JSON with stops, each with name, lat and lon in degrees")
    round_trip: bool = Field(False, description="Whether the route ends where it began")
    unit: Literal["km", "mi"] = "km"


class Output(BaseModel):
    length: float
    legs: int
    longest: float


def distance(one: dict, other: dict) -> float:
    lat1, lat2 = radians(one["lat"]), radians(other["lat"])
    dlat, dlon = lat2 - lat1, radians(other["lon"] - one["lon"])
    chord = sin(dlat / 2) ** 2 + cos(lat1) * cos(lat2) * sin(dlon / 2) ** 2
    return 2 * RADIUS_KM * asin(sqrt(chord))


def run(input: Input) -> Output:
    stops = json.loads(Path(input.path).read_text(encoding="utf-8"))["stops"]
    legs = [distance(one, other) for one, other in pairwise(stops)]
    factor = 1 if input.unit == "km" else 1 / KM_PER_MILE
    length = sum(legs) * factor
    longest = max(legs, default=0.0) * factor
    return Output(length=round(length, 1), legs=len(legs), longest=round(longest, 1))
