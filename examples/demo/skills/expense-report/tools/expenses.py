"""Sum, mean or share of one category of expenses in a CSV file."""

import csv
from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "expenses",
    "description": "Sum, mean or share of the expenses of a category in a CSV file",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    table: str
    category: str = ""
    measure: str = "sum"


class Output(BaseModel):
    value: float
    entries: int


def quotient(part: float, whole: float) -> float:
    """part / whole; 0 where there is nothing to divide by."""
    return part / whole if whole else 0.0


def run(input: Input) -> Output:
    spent = 0.0
    overall = 0.0
    entries = 0
    with Path(input.table).open(newline="", encoding="utf-8") as handle:
        for row in csv.DictReader(handle):
            amount = float(row["amount"])
            overall += amount
            if not input.category or row["category"] == input.category:
                spent += amount
                entries += 1
    if input.measure == "mean":
        value = quotient(spent, entries)
    elif input.measure == "share":
        value = quotient(overall, spent)
    else:
        value = spent
    return Output(value=round(value, 4), entries=entries)
