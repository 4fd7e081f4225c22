"""A table of snow, as a web page shows it."""

import csv
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "snow_report",
    "description": "Reads a table of snow that was copied from a web page: the coldest place, the mean temperature to one digit, and where snow lies at 30 cm or more; a minus may be a hyphen or the typographic minus, the decimals have a comma, and a hyphen means no snow",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="A table with semicolons: place, temperature, snow")
    least_cm: int = 30


class Output(BaseModel):
    coldest: str
    mean: float | None
    snow: list[str]


@dataclass(frozen=True)
class Place:
    name: str
    degrees: float
    snow_cm: int


def degrees(text: str) -> float:
    return float(text.strip().replace(",", "."))


def centimetres(text: str) -> int:
    number = text.removesuffix("cm").strip()
    return 0 if number == "-" else int(number)


def places(path: str) -> list[Place]:
    lines = Path(path).read_text(encoding="utf-8").splitlines()
    table = csv.reader(lines[1:], delimiter=";")
    return [Place(row[0].strip(), degrees(row[1]), centimetres(row[2])) for row in table if row]


def run(input: Input) -> Output:
    found = places(input.path)
    if not found:
        return Output(coldest="", mean=None, snow=[])
    coldest = min(found, key=lambda place: (place.degrees, place.name))
    mean = sum(place.degrees for place in found) / len(found)
    return Output(
        coldest=coldest.name,
        mean=round(mean, 1),
        snow=[place.name for place in found if place.snow_cm >= input.least_cm],
    )
