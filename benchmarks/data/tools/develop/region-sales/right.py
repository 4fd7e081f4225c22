"""Adds sales up by region."""

import csv
from collections import defaultdict
from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "region_sales",
    "description": "Sales by region from a table with the columns region and amount, separated by semicolons; amounts are written as 1,234,567.89, where the commas only separate thousands",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str


class Output(BaseModel):
    regions: dict[str, float]
    total: float
    best: str | None


def amount(text: str) -> float:
    return float(text.strip().replace(",", ""))


def run(input: Input) -> Output:
    sums: dict[str, float] = defaultdict(float)
    with Path(input.path).open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, delimiter=";"):
            sums[row["region"].strip()] += amount(row["amount"])
    regions = {region: round(sums[region], 2) for region in sorted(sums)}
    return Output(
        regions=regions,
        total=round(sum(sums.values()), 2),
        best=max(regions, key=lambda region: regions[region], default=None),
    )
