"""Points for purchases."""

from collections import Counter
from decimal import Decimal

from pydantic import BaseModel

TOOL = {
    "name": "loyalty_points",
    "description": "Points of a loyalty card: one for each whole euro of a purchase, times the factor of its category where there is one; a voucher for each full 100 points, and the points left",
    "effects": ["pure"],
    "dependencies": [],
}


FOR_A_VOUCHER = 100


class Input(BaseModel):
    factors: dict[str, int]
    purchases: list[tuple[str, Decimal]]


class Output(BaseModel):
    points: dict[str, int]
    vouchers: int
    left: int


class Card:
    def __init__(self, factors: dict[str, int]) -> None:
        self.factors = factors
        self.points: Counter[str] = Counter()

    def add(self, category: str, price: Decimal) -> None:
        self.points[category] += int(price) * self.factors.get(category, 1)

    @property
    def total(self) -> int:
        return sum(self.points.values())


def run(input: Input) -> Output:
    card = Card(input.factors)
    for category, price in input.purchases:
        card.add(category, price)
    vouchers, left = divmod(card.total, FOR_A_VOUCHER)
    return Output(points=dict(sorted(card.points.items())), vouchers=vouchers, left=left)
