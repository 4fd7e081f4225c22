"""Largest falls of funds."""

import csv
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "fund_drawdown",
    "description": "Largest fall of each fund from its highest price so far, in tenths of a percent, rounded down, and the fund with the largest",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="CSV with day, fund and price in cents, in any order")
    since: str = Field(default="", description="Only prices from this day on, YYYY-MM-DD")


class Output(BaseModel):
    falls: dict[str, int]
    worst: str | None


def largest_fall(prices: list[int]) -> int:
    """Tenths of a percent, rounded down; 0 where the price never fell."""
    peak, worst = prices[0], 0
    for price in prices:
        worst = max(worst, (peak - price) * 1000 // peak)
        peak = price
    return worst


def run(input: Input) -> Output:
    series: dict[str, list[tuple[str, int]]] = {}
    with Path(input.path).open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if row["day"] >= input.since:
                series.setdefault(row["fund"], []).append((row["day"], int(row["price"])))
    falls = {}
    for fund, entries in sorted(series.items()):
        falls[fund] = largest_fall([price for _, price in sorted(entries)])
    return Output(
        falls=falls,
        worst=max(falls, key=lambda fund: falls[fund], default=None),
    )
