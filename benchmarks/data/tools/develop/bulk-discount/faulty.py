"""Quantity discounts."""

from collections.abc import Callable

from pydantic import BaseModel, Field

TOOL = {
    "name": "bulk_discount",
    "description": "The price of a quantity after the best of the discounts that its size gives a right to (each from a least quantity on, in percent), and the rule's percentage",
    "effects": ["pure"],
    "dependencies": [],
}


class Rule(BaseModel):
    least: int = Field(ge=1)
    percent: float = Field(ge=0, le=100)


class Input(BaseModel):
    price: float
    quantity: int = Field(ge=0)
    rules: list[Rule] = []


class Output(BaseModel):
    full: float
    pay: float
    percent: float


def discounts(rules: list[Rule]) -> list[Callable[[int], float]]:
    """One function of the quantity for each rule; it gives the percentage, or 0."""
    found = []
    for rule in rules:
        found.append(lambda quantity: rule.percent if quantity >= rule.least else 0.0)
    return found


def run(input: Input) -> Output:
    full = input.price * input.quantity
    percent = max((discount(input.quantity) for discount in discounts(input.rules)), default=0.0)
    return Output(full=round(full, 2), pay=round(full * (100 - percent) / 100, 2), percent=percent)
