"""Puts the houses of a leaflet round in order."""

import re
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "leaflet_round",
    "description": "The houses of each street in the order of a round: first upwards along the odd numbers, then back downwards along the even ones (upwards 12 is before 12a, and that before 14), and the streets with houses on one side only",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="Lines of the form: street;house, such as: Mill Lane;12a")


class Output(BaseModel):
    streets: dict[str, list[str]]
    one_sided: list[str]
    houses: int


def place(house: str) -> tuple:
    """What houses are ordered by: the number, then the letter."""
    match = re.fullmatch(r"(\d+)([a-z]?)", house)
    return int(match[1]), match[2]


def is_odd(house: str) -> bool:
    return int(house.rstrip("abcdefghijklmnopqrstuvwxyz")) % 2 == 1


def run(input: Input) -> Output:
    """Streets in the order in which they are first named."""
    found: dict[str, list[str]] = {}
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if line.strip():
            street, house = line.split(";")
            found.setdefault(street.strip(), []).append(house.strip())
    streets, one_sided = {}, []
    for street, houses in found.items():
        up = sorted((house for house in houses if is_odd(house)), key=place)
        down = sorted((house for house in houses if not is_odd(house)), key=place, reverse=True)
        streets[street] = up + down
        if not up or not down:
            one_sided.append(street)
    return Output(streets=streets, one_sided=one_sided, houses=sum(map(len, streets.values())))
