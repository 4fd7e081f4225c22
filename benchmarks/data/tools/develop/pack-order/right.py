"""Packs to order so that no article is below its minimum."""

import csv
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "pack_order",
    "description": "How many packs of each article to order",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="CSV: article,stock,minimum,pack (pieces in a pack)")


class Output(BaseModel):
    packs: dict[str, int] = Field(description="Article number to packs, only what is ordered")
    pieces: int


def packs_for(missing: int, size: int) -> int:
    """Whole packs that hold at least the missing pieces."""
    return -(-missing // size)


def run(input: Input) -> Output:
    packs: dict[str, int] = {}
    pieces = 0
    with Path(input.path).open(newline="", encoding="utf-8") as handle:
        for row in csv.DictReader(handle):
            missing = int(row["minimum"]) - int(row["stock"])
            if missing <= 0:
                continue
            count = packs_for(missing, int(row["pack"]))
            if count:
                packs[row["article"]] = count
                pieces += count * int(row["pack"])
    return Output(packs=packs, pieces=pieces)
