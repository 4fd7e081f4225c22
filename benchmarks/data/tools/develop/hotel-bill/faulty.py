"""Bills for stays in a hotel."""

import csv
from datetime import date, timedelta
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "hotel_bill",
    "description": "Bills of hotel stays with a higher rate in the nights of Friday and Saturday and a tax for each night",
    "effects": ["read"],
    "dependencies": [],
}

RATES = {"single": (79, 95), "double": (110, 138), "suite": (190, 240)}  # week, weekend


class Input(BaseModel):
    path: str = Field(description="CSV with guest, arrival, nights and room")
    tax: float = Field(0, description="For each night")


class Output(BaseModel):
    bills: dict[str, float]
    weekend_nights: int
    total: float


def is_weekend(night: date) -> bool:
    """Whether a night, which has the date of its evening, is one before a free day."""
    return night.weekday() >= 5


def run(input: Input) -> Output:
    bills: dict[str, float] = {}
    weekend = 0
    with Path(input.path).open(newline="", encoding="utf-8") as handle:
        for row in csv.DictReader(handle):
            usual, higher = RATES[row["room"]]
            arrival = date.fromisoformat(row["arrival"])
            price = 0.0
            for number in range(int(row["nights"])):
                if is_weekend(arrival + timedelta(days=number)):
                    price += higher + input.tax
                    weekend += 1
                else:
                    price += usual + input.tax
            bills[row["guest"]] = round(bills.get(row["guest"], 0) + price, 2)
    return Output(bills=bills, weekend_nights=weekend, total=round(sum(bills.values()), 2))
