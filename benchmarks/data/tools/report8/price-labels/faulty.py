"""Labels of a shelf, from a list of articles."""

import re
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "price_labels",
    "description": "Labels such as 'Oats 500 g 1.49 (2.98/kg)' from lines NAME;AMOUNT UNIT;PRICE[;OLD PRICE], and the articles that became cheaper",
    "effects": ["read"],
    "dependencies": [],
}

AMOUNT = re.compile(r"([\d.]+)\s*(g|kg|ml|l)")
BASE = {"g": ("kg", 1000), "kg": ("kg", 1), "ml": ("l", 1000), "l": ("l", 1)}
CENT = Decimal("0.01")


class Input(BaseModel):
    path: str = Field(description="One article a line")
    currency: str = Field(default="", description="Stands before a price")


class Output(BaseModel):
    labels: list[str]
    cheaper: list[str]


def money(amount: Decimal) -> str:
    """With two decimals; half a cent is rounded up."""
    return str(amount.quantize(CENT, rounding=ROUND_HALF_UP))


def unit_price(price: Decimal, amount: str) -> str:
    found = AMOUNT.fullmatch(amount)
    if not found:
        return ""
    unit, parts = BASE[found[2]]
    size = Decimal(found[1])
    return f"{money(price * parts / size)}/{unit}" if size else ""


def label(name: str, amount: str, price: Decimal, old: Decimal | None, currency: str) -> str:
    text = f"{name} {amount} {currency}{money(price)}"
    each = unit_price(price, amount)
    if each:
        text += f" ({currency}{each})"
    if old is not None and old > price:
        text += f", was {currency}{money(old)}"
    return text


def run(input: Input) -> Output:
    labels = []
    cheaper = []
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if not line.strip():
            continue
        name, amount, price, *rest = (part.strip() for part in line.split(";"))
        old = Decimal(rest[0]) if rest and rest[0] else None
        labels.append(label(name, amount, Decimal(price), old, input.currency))
        if old is not None and old > Decimal(price):
            cheaper.append(name)
    return Output(labels=labels, cheaper=cheaper)
