"""Value added tax within gross amounts."""

import csv
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "vat_split",
    "description": "Net prices and tax of gross amounts, by rate",
    "effects": ["read"],
    "dependencies": [],
}

CENT = Decimal("0.01")


class Input(BaseModel):
    path: str = Field(description="CSV with receipt, gross and rate (percent; empty is the usual rate)")
    usual: int = 19


class Output(BaseModel):
    tax: dict[str, float] = Field(description="By rate; the tax of a receipt is rounded to the cent")
    net: float


def included(gross: Decimal, rate: int) -> Decimal:
    """The tax in a gross amount."""
    return (gross * rate / (100 + rate)).quantize(CENT, rounding=ROUND_HALF_UP)


def run(input: Input) -> Output:
    tax: dict[str, Decimal] = {}
    net = Decimal(0)
    with Path(input.path).open(newline="", encoding="utf-8") as handle:
        for row in csv.DictReader(handle):
            gross = Decimal(row["gross"])
            rate = int(row["rate"].strip() or input.usual)
            part = included(gross, rate)
            key = str(rate)
            tax[key] = tax.get(key, Decimal(0)) + part
            net += gross - part
    ordered = sorted(tax.items(), key=lambda item: int(item[0]))
    return Output(tax={rate: float(part) for rate, part in ordered}, net=float(net))
