"""The nearest stop."""

from math import asin, cos, radians, sin, sqrt

from pydantic import BaseModel

TOOL = {
    "name": "nearest_stop",
    "description": "Stops by distance from a place, nearest first (then by name), and those within some metres; places are [longitude, latitude], and distances are those on a sphere of 6,371 km",
    "effects": ["pure"],
    "dependencies": [],
}


RADIUS_M = 6_371_000

Place = tuple[float, float]


class Input(BaseModel):
    stops: dict[str, Place]
    place: Place
    within_m: int = 1000


class Output(BaseModel):
    order: list[str]
    nearest: str | None
    within: list[str]


def distance(lat1: float, lon1: float, lat2: float, lon2: float) -> float:
    """Metres between two points given in degrees."""
    north = radians(lat2 - lat1)
    east = radians(lon2 - lon1)
    chord = sin(north / 2) ** 2 + cos(radians(lat1)) * cos(radians(lat2)) * sin(east / 2) ** 2
    return 2 * RADIUS_M * asin(min(1.0, sqrt(chord)))


def run(input: Input) -> Output:
    lon, lat = input.place
    metres = {}
    for name, (stop_lon, stop_lat) in input.stops.items():
        metres[name] = distance(lon, lat, stop_lon, stop_lat)
    order = sorted(metres, key=lambda name: (metres[name], name))
    return Output(
        order=order,
        nearest=order[0] if order else None,
        within=[name for name in order if metres[name] <= input.within_m],
    )
