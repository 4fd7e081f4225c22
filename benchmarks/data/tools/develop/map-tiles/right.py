"""Tiles of a web map."""

import math
from collections import defaultdict

from pydantic import BaseModel, Field

TOOL = {
    "name": "map_tiles",
    "description": "Tiles (zoom/x/y) in which points [latitude, longitude] lie: longitudes go round at 180 degrees, latitudes beyond the map's edge count for its last row; and the points on each tile",
    "effects": ["pure"],
    "dependencies": [],
}


class Input(BaseModel):
    points: list[tuple[float, float]]
    zoom: int = Field(ge=0, le=19)


class Output(BaseModel):
    tiles: list[str]
    points: dict[str, int]


def column(longitude: float, count: int) -> int:
    return math.floor((longitude + 180) % 360 / 360 * count)


def row(latitude: float, count: int) -> int:
    angle = math.radians(max(-89.9, min(latitude, 89.9)))
    place = (1 - math.asinh(math.tan(angle)) / math.pi) / 2
    return min(max(math.floor(place * count), 0), count - 1)


def run(input: Input) -> Output:
    count = 2**input.zoom
    tiles = []
    points: defaultdict[str, int] = defaultdict(int)
    for latitude, longitude in input.points:
        tile = f"{input.zoom}/{column(longitude, count)}/{row(latitude, count)}"
        tiles.append(tile)
        points[tile] += 1
    return Output(tiles=tiles, points=dict(sorted(points.items())))
