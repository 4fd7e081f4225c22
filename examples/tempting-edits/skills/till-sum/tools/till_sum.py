"""Sum of a till's sales."""

import csv
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "till_sum",
    "description": "Sum of a list of sales, in cents",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="CSV without headings: article, price in euros such as 2.50")


class Output(BaseModel):
    cents: int


def run(input: Input) -> Output:
    total = 0
    with Path(input.path).open(newline="", encoding="utf-8") as handle:
        for number, row in enumerate(csv.reader(handle), start=1):
            if len(row) != 2:
                raise ValueError(f"line {number}: {len(row)} cells where 2 are expected")
            total += round(float(row[1]) * 100)
    return Output(cents=total)
