"""Tolls of vehicles."""

import csv
from collections import defaultdict
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "toll_passages",
    "description": "Toll of each vehicle from a table with the columns plate and axles (and others, in any order): at least 2 axles are paid for each passage; and the vehicle that pays most",
    "effects": ["read"],
    "dependencies": [],
}


LEAST_AXLES = 2


class Input(BaseModel):
    path: str
    cents_per_axle: int = Field(100, ge=0)


class Output(BaseModel):
    cents: dict[str, int]
    passages: dict[str, int]
    most: str | None


def run(input: Input) -> Output:
    cents: defaultdict[str, int] = defaultdict(int)
    passages: defaultdict[str, int] = defaultdict(int)
    with Path(input.path).open(newline="", encoding="utf-8") as handle:
        rows = csv.reader(handle)
        next(rows, None)
        for row in rows:
            plate = row[0].strip()
            axles = int(row[2])
            cents[plate] += max(axles, LEAST_AXLES) * input.cents_per_axle
            passages[plate] += 1
    most = min(cents, key=lambda plate: (-cents[plate], plate), default=None)
    return Output(
        cents=dict(sorted(cents.items())),
        passages=dict(sorted(passages.items())),
        most=most,
    )
