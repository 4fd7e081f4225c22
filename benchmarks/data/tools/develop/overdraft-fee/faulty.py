"""Fees for an overdrawn account."""

from datetime import date
from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "overdraft_fee",
    "description": "The fee for an overdrawn account: a fixed sum for each day at whose end the balance is below zero by more than a free limit; bookings of one day count together; to the end of April 2026",
    "effects": ["read"],
    "dependencies": [],
}

END = date(2026, 5, 1)


class Input(BaseModel):
    path: str
    opening: int = 0
    fee: int = 10
    grace: int = 0


class Output(BaseModel):
    days: int
    fees: int
    lowest: int
    closing: int


def run(input: Input) -> Output:
    """Bookings: YYYY-MM-DD, amount, in any order; days are counted from the first booking on."""
    sums: dict[date, int] = {}
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if line.strip():
            day, amount = line.split(",")
            when = date.fromisoformat(day.strip())
            sums[when] = sums.get(when, 0) + int(amount)
    balance = lowest = input.opening
    days = 0
    dates = sorted(sums)
    for day, following in zip(dates, [*dates[1:], END]):
        if balance < -input.grace:
            days += (following - day).days
        balance += sums[day]
        lowest = min(lowest, balance)
    return Output(days=days, fees=days * input.fee, lowest=lowest, closing=balance)
