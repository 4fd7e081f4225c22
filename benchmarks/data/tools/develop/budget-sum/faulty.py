"""Sums of a budget."""

from decimal import Decimal
from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "budget_sum",
    "description": "Sums a budget whose amounts are written in the European way (1.234.567,89, perhaps with a €): each item, incomes and costs, and the balance, in cents",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str


class Output(BaseModel):
    items: dict[str, int]
    incomes: int
    costs: int
    balance: int


def cents(text: str) -> int:
    """Without a comma the amount is in whole euros."""
    plain = text.replace("€", "").strip()
    plain = plain.replace(".", "", 1).replace(",", ".")
    return int(Decimal(plain) * 100)


def run(input: Input) -> Output:
    """Lines: item: amount. Costs are negative; an item may occur more than once."""
    items: dict[str, int] = {}
    incomes = costs = 0
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if not line.strip():
            continue
        item, text = line.rsplit(":", 1)
        amount = cents(text)
        items[item.strip()] = items.get(item.strip(), 0) + amount
        if amount < 0:
            costs -= amount
        else:
            incomes += amount
    return Output(items=items, incomes=incomes, costs=costs, balance=incomes - costs)
