"""What a shop took in."""

import csv
from decimal import Decimal
from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "shop_revenue",
    "description": "What a shop took in, in cents: for goods and for shipping, from a table with a line for each article of an order, on which the order's shipping stands again and again; the number of orders, the largest one, and how many orders reach a value of goods from which shipping might be free",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str
    free_from: int = 0


class Output(BaseModel):
    goods: int
    shipping: int
    orders: int
    largest: str | None
    could_be_free: int


def run(input: Input) -> Output:
    """A CSV file with the columns order, article, number, price and shipping."""
    goods: dict[str, int] = {}
    shipping = 0
    with Path(input.path).open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            order = row["order"]
            cents = int(Decimal(row["price"]) * 100) * int(row["number"])
            goods[order] = goods.get(order, 0) + cents
            shipping += int(Decimal(row["shipping"]) * 100)
    return Output(
        goods=sum(goods.values()),
        shipping=shipping,
        orders=len(goods),
        largest=max(goods, key=lambda order: goods[order], default=None),
        could_be_free=sum(cents >= input.free_from for cents in goods.values()),
    )
