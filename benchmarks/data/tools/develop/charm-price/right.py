"""Prices that end in 99 cents."""

import math
from decimal import Decimal

from pydantic import BaseModel, Field

TOOL = {
    "name": "charm_price",
    "description": "Shop price of each article: cost plus a markup in percent, then the next price ending in .99 that is not lower",
    "effects": ["pure"],
    "dependencies": [],
}


CENT = Decimal("0.01")


class Input(BaseModel):
    costs: dict[str, Decimal]
    markup: int = Field(ge=0, description="percent")


class Output(BaseModel):
    prices: dict[str, Decimal]
    margin: Decimal


def charm(price: Decimal) -> Decimal:
    """The least price of the form N.99 from this one on."""
    whole = math.ceil(price + CENT)
    return whole - CENT


def run(input: Input) -> Output:
    factor = 1 + Decimal(input.markup) / 100
    prices = {}
    margin = Decimal(0)
    for article, cost in sorted(input.costs.items()):
        prices[article] = charm(cost * factor)
        margin += prices[article] - cost
    return Output(prices=prices, margin=margin.quantize(CENT))
