"""What to order from a stock list."""

import csv
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "reorder_list",
    "description": "Packs to order of every article that has fallen below its minimum, up to its maximum",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="CSV with article, on_hand, on_order, minimum, maximum and pack")


class Order(BaseModel):
    article: str
    packs: int
    pieces: int


class Output(BaseModel):
    orders: list[Order]
    enough: int = Field(description="Articles of which nothing is ordered")


def packs_for(missing: int, pack: int) -> int:
    """Full packs that bring at least so many pieces."""
    return -(-missing // pack)


def run(input: Input) -> Output:
    orders = []
    enough = 0
    with Path(input.path).open(newline="", encoding="utf-8") as handle:
        for row in csv.DictReader(handle):
            coming = int(row["on_hand"]) + int(row["on_order"])
            pack = int(row["pack"] or 1)
            if coming >= int(row["minimum"]):
                enough += 1
                continue
            packs = packs_for(int(row["maximum"]) - coming, pack)
            orders.append(Order(article=row["article"], packs=packs, pieces=packs * pack))
    orders.sort(key=lambda order: (-order.pieces, order.article))
    return Output(orders=orders, enough=enough)
