"""UTM zones."""

from math import floor

from pydantic import BaseModel, Field

TOOL = {
    "name": "utm_zones",
    "description": "The UTM zones of points as number and N or S (the equator is N): 60 zones of six degrees from 180 degrees west on, zone 1 up to but not with 174 west, where the meridian of 180 degrees east belongs to zone 60; without the exceptions of Norway; and the central meridian of each",
    "effects": ["pure"],
    "dependencies": [],
}


class Point(BaseModel):
    lat: float = Field(ge=-80, le=84)
    lon: float = Field(ge=-180, le=180)


class Input(BaseModel):
    points: list[Point]


class Output(BaseModel):
    zones: list[str]
    meridians: list[int]
    same: bool


def zone(lon: float) -> int:
    return floor((lon + 180) / 6) + 1


def run(input: Input) -> Output:
    zones = []
    meridians = []
    for point in input.points:
        number = zone(point.lon)
        half = "N" if point.lat >= 0 else "S"
        zones.append(f"{number}{half}")
        meridians.append(number * 6 - 183)
    return Output(zones=zones, meridians=meridians, same=len(set(zones)) <= 1)
