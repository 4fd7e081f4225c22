"""Open invoices by how late they are."""

import csv
from collections import defaultdict
from datetime import date
from decimal import Decimal
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "invoice_aging",
    "description": "Sum open invoices by age: not yet due, 1 to 30, 31 to 60 and more than 60 days late; and who owes the most",
    "effects": ["read"],
    "dependencies": [],
}


BUCKETS = [(30, "1-30"), (60, "31-60")]


class Input(BaseModel):
    path: str = Field(description="customer,due,amount")
    as_of: date


class Output(BaseModel):
    buckets: dict[str, Decimal]
    largest: str | None


def bucket(days_late: int) -> str:
    if days_late <= 0:
        return "current"
    for limit, name in BUCKETS:
        if days_late < limit:
            return name
    return "61+"


def run(input: Input) -> Output:
    sums = {name: Decimal(0) for name in ("current", "1-30", "31-60", "61+")}
    customers: defaultdict[str, Decimal] = defaultdict(Decimal)
    with Path(input.path).open(newline="", encoding="utf-8") as handle:
        for row in csv.DictReader(handle):
            late = (input.as_of - date.fromisoformat(row["due"])).days
            amount = Decimal(row["amount"])
            sums[bucket(late)] += amount
            customers[row["customer"]] += amount
    largest = max(sorted(customers), key=customers.__getitem__, default=None)
    return Output(buckets=sums, largest=largest)
