"""A box of petty cash."""

import re
from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "petty_cash",
    "description": "What is in a box of petty cash in cents after all entries (+20.00 in, -4.35 out), what was spent for each purpose, and the entries that the box could not pay, which are left out",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str
    start: float = 0.0


class Output(BaseModel):
    balance: int
    spent: dict[str, int]
    refused: list[int]


def cents(amount: float) -> int:
    return round(amount * 100)


def run(input: Input) -> Output:
    """Lines: amount, purpose. What refused names are the numbers of lines, counted from 1."""
    balance = cents(input.start)
    spent: dict[str, int] = {}
    refused = []
    for number, line in enumerate(Path(input.path).read_text(encoding="utf-8").splitlines(), 1):
        found = re.match(r"\s*([+-]\d*\.?\d+)\s*(.*)", line)
        if found is None:
            continue
        amount = cents(float(found[1]))
        purpose = found[2].strip() or "other"
        if balance + amount < 0:
            refused.append(number)
            continue
        balance += amount
        if amount < 0:
            spent[purpose] = spent.get(purpose, 0) - amount
    return Output(balance=balance, spent=spent, refused=refused)
