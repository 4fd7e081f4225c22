"""What orders of a web shop come to."""

from pathlib import Path

from pydantic import BaseModel, Field, TypeAdapter

TOOL = {
    "name": "webshop_totals",
    "description": "What each order of a web shop's export comes to in cents, with its discount of so many percent taken off and rounded down, and how many pieces of each article go out; a discount may be missing or null, which both mean none, and the coupon CLUB takes another 5 percent off",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="A list of orders: number, items (article, cents, count), maybe discount and coupon")


class Output(BaseModel):
    totals: dict[str, int]
    pieces: dict[str, int]


class Item(BaseModel):
    article: str
    cents: int
    count: int = 1


class Order(BaseModel):
    number: int
    items: list[Item]
    discount: int = 0
    coupon: str = ""

    @property
    def percent(self) -> int:
        return self.discount + (5 if self.coupon == "CLUB" else 0)

    @property
    def total(self) -> int:
        whole = sum(item.cents * item.count for item in self.items)
        return whole * (100 - self.percent) // 100


ORDERS = TypeAdapter(list[Order])


def run(input: Input) -> Output:
    orders = ORDERS.validate_json(Path(input.path).read_bytes())
    pieces: dict[str, int] = {}
    for order in orders:
        for item in order.items:
            pieces[item.article] = pieces.get(item.article, 0) + item.count
    return Output(totals={str(order.number): order.total for order in orders}, pieces=dict(sorted(pieces.items())))
