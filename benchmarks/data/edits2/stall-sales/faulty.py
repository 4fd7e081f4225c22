"""Adds up what a market stall sold."""

import csv
from decimal import ROUND_HALF_UP, Decimal

from pydantic import BaseModel, Field

TOOL = {
    "name": "stall_sales",
    "description": "Adds up a file of sales (article;quantity;price, with a decimal comma and points between the thousands, returns with a minus): the amount of each article in the order of the file, and the total, both rounded half up to cents at the end",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str
    currency: str = Field("EUR", description="What is written after the total")


class Output(BaseModel):
    amounts: dict[str, str]
    total: str


def number(text: str) -> Decimal:
    """1.250,50 as a number."""
    return Decimal(text.strip().replace(",", "."))


def cents(amount: Decimal) -> Decimal:
    return amount.quantize(Decimal("0.01"), rounding=ROUND_HALF_UP)


def run(input: Input) -> Output:
    amounts: dict[str, Decimal] = {}
    with open(input.path, encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, delimiter=";"):
            article = row["article"].strip()
            amount = number(row["quantity"]) * number(row["price"])
            amounts[article] = amounts.get(article, Decimal(0)) + amount
    total = cents(sum(amounts.values(), Decimal(0)))
    rounded = {article: str(cents(amount)) for article, amount in amounts.items()}
    return Output(amounts=rounded, total=f"{total} {input.currency}")
