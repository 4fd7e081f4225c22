"""Mileage that an employee may claim."""

import csv
from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "mileage_claim",
    "description": "Cents to be paid for trips: a full rate up to a threshold of the year's kilometres, a lower one above",
    "effects": ["read"],
    "dependencies": [],
}

FULL, LOWER = 45, 25  # cents for a kilometre
NOT_PAID = {"commute"}


class Input(BaseModel):
    path: str
    threshold_km: int = 10000
    already_km: int = 0


class Output(BaseModel):
    cents: int
    by_day: dict[str, int]
    total_km: int


def run(input: Input) -> Output:
    so_far = input.already_km
    by_day: dict[str, int] = {}
    with Path(input.path).open(newline="", encoding="utf-8") as handle:
        rows = list(csv.DictReader(handle))
    for row in sorted(rows, key=lambda row: row["day"]):
        if row["purpose"] in NOT_PAID:
            continue
        km = int(row["km"])
        at_full = max(0, min(km, input.threshold_km - so_far))
        cents = at_full * FULL + (km - at_full) * LOWER
        by_day[row["day"]] = by_day.get(row["day"], 0) + cents
        so_far += km
    return Output(cents=sum(by_day.values()), by_day=by_day, total_km=so_far)
