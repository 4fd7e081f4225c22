"""Adds up a ledger."""

from decimal import Decimal
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "ledger_import",
    "description": "The sums of each account of a ledger in cents, where an amount may have a dollar sign and commas, and one that is owed stands in parentheses or has a minus sign; the sum of all, and which accounts are below zero",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="Lines of the form: account, a tab, amount")


class Output(BaseModel):
    accounts: dict[str, int]
    total: int
    below: list[str]


def cents(text: str) -> int:
    """An amount such as 12.50, $1,250, -3 or (0.99)."""
    digits = text.strip().replace("$", "").replace(",", "")
    negative = digits.startswith("(") and digits.endswith(")")
    if negative:
        digits = digits[1:-1]
    value = int(Decimal(digits.strip()) * 100)
    return -value if negative else value


def run(input: Input) -> Output:
    accounts: dict[str, int] = {}
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if not line.strip():
            continue
        account, amount = line.rsplit("\t", 1)
        name = account.strip()
        accounts[name] = accounts.get(name, 0) + cents(amount)
    total = sum(accounts.values())
    below = [name for name, value in accounts.items() if value < 0]
    return Output(accounts=accounts, total=total, below=below)
