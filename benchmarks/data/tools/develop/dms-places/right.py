"""Degrees, minutes and seconds as decimals."""

import re

from pydantic import BaseModel

TOOL = {
    "name": "dms_places",
    "description": "Turn places such as 53°33'18\"N 9°59'0\"W into decimal degrees (south and west negative, five places), and name the northernmost",
    "effects": ["pure"],
    "dependencies": [],
}


PART = re.compile(r"(\d+)°\s*(?:(\d+)['′]\s*)?(?:(\d+(?:\.\d+)?)[\"″]\s*)?([NSEW])")


class Input(BaseModel):
    places: dict[str, str]


class Output(BaseModel):
    decimal: dict[str, tuple[float, float]]
    northernmost: str | None


def degrees(text: str) -> list[float]:
    found = []
    for whole, minutes, seconds, side in PART.findall(text):
        value = int(whole) + int(minutes or 0) / 60 + float(seconds or 0) / 3600
        if side in "SW":
            value = -value
        found.append(round(value, 5))
    return found


def run(input: Input) -> Output:
    decimal = {}
    for name, text in input.places.items():
        values = degrees(text)
        if len(values) != 2:
            raise ValueError(f"{name}: not a latitude and a longitude: {text}")
        decimal[name] = (values[0], values[1])
    northernmost = max(sorted(decimal), key=lambda name: decimal[name][0], default=None)
    return Output(decimal=decimal, northernmost=northernmost)
