"""The takings of a day from a till's journal."""

import csv
from decimal import Decimal
from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "takings",
    "description": "Takings and number of booked entries of a day from a till's journal in CSV",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    journal: str


class Output(BaseModel):
    takings: float
    entries: int
    first: str


def run(input: Input) -> Output:
    total = Decimal(0)
    entries = 0
    first = ""
    with Path(input.journal).open(newline="", encoding="utf-8") as handle:
        for row in csv.DictReader(handle):
            amount = Decimal(row["amount"])
            if amount < 0:  # cancelled at the till
                continue
            total += amount
            entries += 1
            first = first or row["time"]
    return Output(takings=float(total), entries=entries, first=first)
