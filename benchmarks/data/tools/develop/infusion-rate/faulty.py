"""Rates of infusions."""

import csv
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "infusion_rate",
    "description": "Rates of infusions in millilitres an hour and in drops a minute",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="CSV with bag, ml and time such as 8h, 90min or 1h30min")
    drops: int = Field(20, description="Drops in a millilitre")


class Rate(BaseModel):
    bag: str
    ml_per_hour: float
    drops_per_minute: int


class Output(BaseModel):
    rates: list[Rate]


def minutes(text: str) -> int:
    """Minutes of a duration."""
    if text.endswith("min"):
        return int(text.removesuffix("min"))
    return int(text.removesuffix("h")) * 60


def run(input: Input) -> Output:
    rates = []
    with Path(input.path).open(newline="", encoding="utf-8") as handle:
        for row in csv.DictReader(handle):
            ml, time = Decimal(row["ml"]), minutes(row["time"].strip().lower())
            drops = (ml * input.drops / time).quantize(Decimal(1), rounding=ROUND_HALF_UP)
            hourly = round(float(ml * 60 / time), 1)
            rates.append(Rate(bag=row["bag"], ml_per_hour=hourly, drops_per_minute=int(drops)))
    return Output(rates=rates)
