"""Changes between two price lists."""

import csv
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "price_changes",
    "description": "How the prices of two lists differ",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    old: str = Field(description="CSV without headings: article number, price in cents")
    new: str


class Output(BaseModel):
    percent: dict[str, float] = Field(description="Change in percent of the old price, only where it changed")
    gone: list[str]
    added: list[str]


def prices(path: str) -> dict[str, int]:
    with Path(path).open(newline="", encoding="utf-8") as handle:
        return {number.strip(): int(price) for number, price in csv.reader(handle)}


def change(before: int, after: int) -> float:
    return round(100 * (after - before) / before, 1)


def run(input: Input) -> Output:
    old, new = prices(input.old), prices(input.new)
    both = sorted(old.keys() & new.keys())
    return Output(
        percent={number: change(old[number], new[number]) for number in both if old[number] != new[number]},
        gone=sorted(old.keys() - new.keys()),
        added=sorted(new.keys() - old.keys()),
    )
