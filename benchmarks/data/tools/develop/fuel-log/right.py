"""What a car consumes."""

import csv
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "fuel_log",
    "description": "Litres per 100 km between full tanks, and the money spent, from a log of refuelling",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="CSV with km, litres, price of a litre and full (y or n)")


class Output(BaseModel):
    legs: list[float] = Field(description="Litres per 100 km from each full tank to the next")
    worst: float | None
    spent: float


def rows_of(path: str) -> list[dict[str, str]]:
    with Path(path).open(newline="", encoding="utf-8") as handle:
        rows = [row for row in csv.DictReader(handle) if row["km"]]
    return sorted(rows, key=lambda row: int(row["km"]))


def run(input: Input) -> Output:
    legs: list[float] = []
    spent = 0.0
    last_full: int | None = None
    litres = 0.0
    for row in rows_of(input.path):
        km = int(row["km"])
        spent += float(row["litres"]) * float(row["price"])
        litres += float(row["litres"])
        if row["full"] == "y":
            if last_full is not None:
                legs.append(round(litres / (km - last_full) * 100, 2))
            last_full = km
            litres = 0.0
    return Output(legs=legs, worst=max(legs, default=None), spent=round(spent, 2))
