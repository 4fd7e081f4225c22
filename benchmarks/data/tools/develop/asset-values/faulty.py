"""Linear depreciation by months."""

import csv
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "asset_values",
    "description": "Book values of a firm's assets at the end of a year, written off in equal months from the month of purchase",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="CSV with asset, bought (YYYY-MM-DD), cost and years")
    year: int = Field(description="The values are those at its end")


class Output(BaseModel):
    values: dict[str, float]
    depreciation: float = Field(description="What the year takes from all of them")


def months(bought: str, year: int) -> int:
    """Months from that of the purchase to the end of a year."""
    first, month, _ = map(int, bought.split("-"))
    return max(0, (year - first) * 12 + 12 - month)


def run(input: Input) -> Output:
    """An asset that is bought later is left out; one that is written off keeps one unit of money."""
    values: dict[str, float] = {}
    taken = 0.0
    with Path(input.path).open(newline="", encoding="utf-8") as handle:
        for row in csv.DictReader(handle):
            if int(row["bought"][:4]) > input.year:
                continue
            cost, span = float(row["cost"]), int(row["years"]) * 12
            ends = []
            for year in (input.year - 1, input.year):
                used = min(months(row["bought"], year), span)
                ends.append(max(cost - cost * used / span, min(cost, 1.0)))
            values[row["asset"]] = round(ends[1], 2)
            taken += ends[0] - ends[1]
    return Output(values=values, depreciation=round(taken, 2))
