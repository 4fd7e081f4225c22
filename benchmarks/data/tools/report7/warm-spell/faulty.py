"""The warmest days in a row."""

import csv
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "warm_spell",
    "description": "First day and mean of the warmest so many days in a row, the earliest of equals, and the number of hot days",
    "effects": ["read"],
    "dependencies": [],
}
HOT = 30.0


class Input(BaseModel):
    path: str = Field(description="CSV with day and high in degrees, one row a day, in order")
    days: int = Field(default=3, ge=1, description="How many days in a row")


class Output(BaseModel):
    first: str | None
    mean: float | None
    hot: int


def run(input: Input) -> Output:
    with Path(input.path).open(newline="", encoding="utf-8") as file:
        rows = [(row["day"], float(row["high"])) for row in csv.DictReader(file)]
    best: float | None = None
    first = None
    for start in range(len(rows) - input.days):
        total = sum(high for _, high in rows[start : start + input.days])
        if best is None or total > best:
            best, first = total, rows[start][0]
    return Output(
        first=first,
        mean=None if best is None else round(best / input.days, 1),
        hot=sum(high >= HOT for _, high in rows),
    )
