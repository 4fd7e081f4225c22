"""Sales of several shops by day."""

import csv
from pathlib import Path

from _moments import in_utc
from pydantic import BaseModel, Field

TOOL = {
    "name": "sales_by_day",
    "description": "Receipts and takings for each day in UTC, from a CSV file with the columns time, shop and cents",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="Times as ISO 8601, with the shop's offset from UTC; without one they are UTC")
    shop: str = Field(default="", description="Only this shop")


class Day(BaseModel):
    day: str
    receipts: int
    cents: int
    last: str


class Output(BaseModel):
    days: list[Day]


def run(input: Input) -> Output:
    days: dict[str, Day] = {}
    with Path(input.path).open(encoding="utf-8", newline="") as file:
        rows = [(in_utc(row["time"]), row) for row in csv.DictReader(file)]
    for moment, row in sorted(rows, key=lambda pair: pair[0]):
        if input.shop and row["shop"] != input.shop:
            continue
        name = moment.date().isoformat()
        day = days.setdefault(name, Day(day=name, receipts=0, cents=0, last=""))
        day.receipts += 1
        day.cents += int(row["cents"])
        day.last = f"{moment:%H:%M}"
    return Output(days=list(days.values()))
