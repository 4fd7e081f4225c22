"""Adds up the lots of a seed library."""

import re
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "seed_lots",
    "description": "The grams in store of each kind of seed, by the two letters that a lot number begins with, the lot numbers that are not of the form of two capitals, a hyphen, four digits and at most one small letter, and the kinds of which less than a given weight is left",
    "effects": ["read"],
    "dependencies": [],
}

LOT = re.compile(r"[A-Z]{2}-[0-9]{4}[a-z]?")


class Input(BaseModel):
    path: str = Field(description="Lines of the form: lot;grams")
    least: int = Field(20, ge=0, description="Grams of which less is scarce")


class Output(BaseModel):
    grams: dict[str, int]
    rejected: list[str]
    scarce: list[str]


def rows(path: str) -> list[tuple[str, int]]:
    found = []
    for line in Path(path).read_text(encoding="utf-8").splitlines():
        if line.strip():
            lot, grams = line.split(";")
            found.append((lot.strip(), int(grams)))
    return found


def valid(lot: str) -> bool:
    return LOT.match(lot) is not None


def run(input: Input) -> Output:
    """A lot whose number is wrong is not counted."""
    grams: dict[str, int] = {}
    rejected = []
    for lot, weight in rows(input.path):
        if not valid(lot):
            rejected.append(lot)
            continue
        kind = lot[:2]
        grams[kind] = grams.get(kind, 0) + weight
    scarce = sorted(kind for kind, weight in grams.items() if weight < input.least)
    return Output(grams=grams, rejected=rejected, scarce=scarce)
