"""Lots for orders, the first to expire first."""

import csv
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "lot_picking",
    "description": "From which lots the orders of a pharmacy are taken: the first to expire first, and none that has expired",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="CSV with lot, drug, expires (YYYY-MM-DD) and boxes, in the order of arrival")
    orders: list[tuple[str, int]]
    day: str = Field(description="A lot may still be used on the day it expires")


class Output(BaseModel):
    picks: list[str]
    missing: dict[str, int]


def stock(path: str, day: str) -> list[dict[str, str]]:
    with Path(path).open(newline="", encoding="utf-8") as handle:
        rows = [row for row in csv.DictReader(handle) if row["expires"] >= day]
    return rows


def run(input: Input) -> Output:
    lots = stock(input.path, input.day)
    left = {row["lot"]: int(row["boxes"]) for row in lots}
    picks: list[str] = []
    missing: dict[str, int] = {}
    for drug, wanted in input.orders:
        for row in lots:
            take = min(wanted, left[row["lot"]]) if row["drug"] == drug else 0
            if take:
                picks.append(f"{take} {row['lot']}")
                left[row["lot"]] -= take
                wanted -= take
        if wanted:
            missing[drug] = missing.get(drug, 0) + wanted
    return Output(picks=picks, missing=missing)
