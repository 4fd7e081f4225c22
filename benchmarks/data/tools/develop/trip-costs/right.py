"""Adds up receipts in several currencies."""

import csv
import json
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "trip_costs",
    "description": "Costs of a trip in euros",
    "effects": ["read"],
    "dependencies": [],
}

HOME = "EUR"


class Input(BaseModel):
    receipts: str = Field(description="CSV: what,amount,currency; the currency in small or capital letters")
    rates: str = Field(description="JSON: currency to its price in euros (the euro itself need not be there)")


class Output(BaseModel):
    by_kind: dict[str, float]
    total: float


def load_rates(path: str) -> dict[str, float]:
    rates = json.loads(Path(path).read_text(encoding="utf-8"))
    return {HOME: 1.0, **rates}


def run(input: Input) -> Output:
    rates = load_rates(input.rates)
    by_kind: dict[str, float] = {}
    with Path(input.receipts).open(newline="", encoding="utf-8") as handle:
        for row in csv.DictReader(handle):
            currency = row["currency"].strip().upper()
            value = float(row["amount"]) * rates[currency]
            by_kind[row["what"]] = by_kind.get(row["what"], 0.0) + value
    rounded = {kind: round(value, 2) for kind, value in sorted(by_kind.items())}
    return Output(by_kind=rounded, total=round(sum(by_kind.values()), 2))
