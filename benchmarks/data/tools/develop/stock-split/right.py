"""Prices of a share, adjusted for splits."""

import csv
from datetime import date
from fractions import Fraction
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "stock_split",
    "description": "Closing prices made comparable across share splits, with the change over the whole time",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    prices: str = Field(description="CSV with date and close as they were quoted")
    splits: str = Field(description="Lines of a date, on which the new price is first quoted, and new:old")


class Output(BaseModel):
    adjusted: dict[str, float]
    change_percent: float | None
    high: str | None = Field(description="Day of the highest adjusted price, the earliest such day")


def read_splits(path: str) -> list[tuple[date, Fraction]]:
    splits = []
    for line in Path(path).read_text(encoding="utf-8").splitlines():
        if line.strip():
            day, ratio = line.split()
            new, old = ratio.split(":")
            splits.append((date.fromisoformat(day), Fraction(int(new), int(old))))
    return splits


def factor(day: date, splits: list[tuple[date, Fraction]]) -> Fraction:
    """What the price of a day is divided by."""
    result = Fraction(1)
    for since, ratio in splits:
        if day < since:
            result *= ratio
    return result


def run(input: Input) -> Output:
    splits = read_splits(input.splits)
    adjusted: dict[str, float] = {}
    with Path(input.prices).open(newline="", encoding="utf-8") as handle:
        for row in sorted(csv.DictReader(handle), key=lambda row: row["date"]):
            price = Fraction(row["close"]) / factor(date.fromisoformat(row["date"]), splits)
            adjusted[row["date"]] = round(float(price), 4)
    days = list(adjusted)
    change = (adjusted[days[-1]] / adjusted[days[0]] - 1) * 100 if len(days) > 1 else None
    return Output(
        adjusted=adjusted,
        change_percent=None if change is None else round(change, 2),
        high=max(days, key=lambda day: adjusted[day], default=None),
    )
