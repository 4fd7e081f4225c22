"""Bus tickets: prices by zone, and a tenth off for a return ticket."""

import json
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "ticket_price",
    "description": "Price of a group's bus tickets",
    "effects": ["read"],
    "dependencies": [],
}

PRICES = {  # cents
    "A": {"adult": 220, "child": 110},
    "AB": {"adult": 310, "child": 160},
    "ABC": {"adult": 400, "child": 210},
}


class Input(BaseModel):
    path: str = Field(description="JSON list of orders: adults, children, zone, return")


class Output(BaseModel):
    cents: list[int]
    total: int


def price(order: dict) -> int:
    table = PRICES[order["zone"]]
    single = order["adults"] * table["adult"] + order["children"] * table["adult"]
    if order["return"]:
        return single * 2 * 9 // 10
    return single


def run(input: Input) -> Output:
    orders = json.loads(Path(input.path).read_text(encoding="utf-8"))
    cents = [price(order) for order in orders]
    return Output(cents=cents, total=sum(cents))
