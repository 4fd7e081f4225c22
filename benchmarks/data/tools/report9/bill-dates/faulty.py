"""Charges of subscriptions."""

from datetime import date
from decimal import Decimal
from pathlib import Path

from _terms import occurrences
from pydantic import BaseModel, Field

TOOL = {
    "name": "bill_dates",
    "description": "The charges of subscriptions up to a day, from lines NAME;FIRST DAY;MONTHS BETWEEN TWO CHARGES;AMOUNT",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="One subscription a line, its first day as YYYY-MM-DD")
    until: date = Field(description="The last day that counts")


class Output(BaseModel):
    charges: list[str]
    total: Decimal


def run(input: Input) -> Output:
    found: list[tuple[date, str, Decimal]] = []
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        name, first, every, amount = (part.strip() for part in line.split(";"))
        for day in occurrences(date.fromisoformat(first), int(every), input.until):
            found.append((day, name, Decimal(amount)))
    found.sort(key=lambda charge: charge[:2])
    return Output(
        charges=[f"{day.isoformat()} {name}" for day, name, _ in found],
        total=sum((amount for *_, amount in found), Decimal(0)),
    )
