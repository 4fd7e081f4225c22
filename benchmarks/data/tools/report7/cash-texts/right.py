"""Balances of a cash book, written out."""

import csv
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "cash_texts",
    "description": "Balance of each account and of all as texts such as 1,204.50 or -3.05, and the accounts below zero",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="CSV with account and cents; spending is below zero")
    opening: dict[str, int] = Field(default_factory=dict, description="Cents on the accounts before")


class Output(BaseModel):
    balances: dict[str, str]
    total: str
    overdrawn: list[str]


def written(cents: int) -> str:
    """An amount with a comma every three digits."""
    sign = "-" if cents < 0 else ""
    whole, rest = divmod(abs(cents), 100)
    return f"{sign}{whole:,}.{rest:02d}"


def run(input: Input) -> Output:
    balances = dict(input.opening)
    with Path(input.path).open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            balances[row["account"]] = balances.get(row["account"], 0) + int(row["cents"])
    return Output(
        balances={account: written(cents) for account, cents in sorted(balances.items())},
        total=written(sum(balances.values())),
        overdrawn=sorted(account for account, cents in balances.items() if cents < 0),
    )
