"""Bounding box of a GeoJSON file."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field

TOOL = {
    "name": "geo_bounds",
    "description": "Bounding box of the features of a GeoJSON file as west, south, east, north",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="A GeoJSON FeatureCollection")
    margin: float = Field(0.0, ge=0, description="Degrees to add on each side")


class Output(BaseModel):
    box: list[float] | None
    middle: list[float] | None
    points: int


def points(geometry: dict[str, Any] | None) -> Iterator[list[float]]:
    """All positions of a geometry, however deep they lie."""
    if geometry is None:
        return
    for part in geometry.get("geometries", []):
        yield from points(part)
    waiting = [geometry.get("coordinates", [])]
    while waiting:
        item = waiting.pop()
        if item and isinstance(item[0], int | float):
            yield item
        else:
            waiting.extend(item)


def run(input: Input) -> Output:
    collection = json.loads(Path(input.path).read_text(encoding="utf-8"))
    low = [float("inf"), float("inf")]
    high = [float("-inf"), float("-inf")]
    count = 0
    for feature in collection["features"]:
        for point in points(feature["geometry"]):
            count += 1
            for axis in (0, 1):
                low[axis] = min(low[axis], point[axis])
                high[axis] = max(high[axis], point[axis])
    if not count:
        return Output(box=None, middle=None, points=0)
    west, south = (round(value - input.margin, 6) for value in low)
    east, north = (round(value + input.margin, 6) for value in high)
    middle = [round((west + east) / 2, 6), round((south + north) / 2, 6)]
    return Output(box=[west, south, east, north], middle=middle, points=count)
