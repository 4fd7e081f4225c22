"""Orders of sandwiches."""

from collections import Counter

from pydantic import BaseModel

TOOL = {
    "name": "sandwich_orders",
    "description": "What goes into each sandwich: the house's standard with what an order adds (+cheese) or leaves out (-onion), and how much of everything the kitchen needs",
    "effects": ["pure"],
    "dependencies": [],
}


class Input(BaseModel):
    standard: list[str]
    orders: list[str]


class Output(BaseModel):
    sandwiches: dict[str, list[str]]
    needed: dict[str, int]
    plain: int


def run(input: Input) -> Output:
    """An order: a guest's name and changes. What is there twice counts twice; - takes one away if it is there."""
    sandwiches: dict[str, list[str]] = {}
    needed: Counter[str] = Counter()
    plain = 0
    for order in input.orders:
        guest, *changes = order.split()
        filling = input.standard
        for change in changes:
            sign, what = change[0], change[1:].lower()
            if sign == "+":
                filling.append(what)
            elif what in filling:
                filling.remove(what)
        if not changes:
            plain += 1
        sandwiches[guest] = sorted(filling)
        needed.update(filling)
    return Output(sandwiches=sandwiches, needed=dict(sorted(needed.items())), plain=plain)
