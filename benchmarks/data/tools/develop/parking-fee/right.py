"""Fees of a car park: the first half hour is free, then each begun hour counts, with a daily cap."""

import csv
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "parking_fee",
    "description": "Fees of the stays in a car park",
    "effects": ["read"],
    "dependencies": [],
}

FREE_MINUTES = 30
CAP_HOURS = 8


class Input(BaseModel):
    path: str = Field(description="CSV with the columns plate and minutes")
    rate: float = Field(2.0, description="Price of one begun hour")


class Output(BaseModel):
    fees: dict[str, float]
    total: float


def hours(minutes: int) -> int:
    """Begun hours to be paid; stays of up to half an hour are free, a day costs eight hours at most."""
    if minutes <= FREE_MINUTES:
        return 0
    days, rest = divmod(minutes, 24 * 60)
    begun = (rest + 59) // 60
    return days * CAP_HOURS + min(begun, CAP_HOURS)


def run(input: Input) -> Output:
    fees: dict[str, float] = {}
    with Path(input.path).open(newline="", encoding="utf-8") as handle:
        for row in csv.DictReader(handle):
            fee = hours(int(row["minutes"])) * input.rate
            fees[row["plate"]] = fees.get(row["plate"], 0.0) + fee
    return Output(fees=fees, total=round(sum(fees.values()), 2))
