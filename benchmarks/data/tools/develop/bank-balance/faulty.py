"""Running balance of a bank account, amounts in the continental form 1.234,56."""

import csv
from decimal import Decimal
from itertools import accumulate
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "bank_balance",
    "description": "Balance of an account after each booking",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="CSV with semicolons: date;text;amount")
    opening: str = Field("0,00", description="Balance before the first booking")


class Output(BaseModel):
    balances: list[str]
    lowest: str


def amount(text: str) -> Decimal:
    return Decimal(text.replace(",", "."))


def shown(value: Decimal) -> str:
    return f"{value:.2f}"


def run(input: Input) -> Output:
    with Path(input.path).open(newline="", encoding="utf-8") as handle:
        bookings = [amount(row["amount"]) for row in csv.DictReader(handle, delimiter=";")]
    balances = list(accumulate(bookings, initial=amount(input.opening)))
    return Output(balances=[shown(value) for value in balances[1:]], lowest=shown(min(balances)))
