"""Adds up the orders of a spice shop."""

from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "spice_orders",
    "description": "The grams that are ordered of each spice, whatever unit an order is given in, the spice of which most is ordered (the first of several), and the customers whose orders weigh a given number of grams or more, by the alphabet",
    "effects": ["read"],
    "dependencies": [],
}

GRAMS = {"mg": 0.001, "g": 1, "kg": 1000}


class Input(BaseModel):
    path: str = Field(description="Lines of the form: customer;spice;amount, such as: Ada;mace;12.5 g (or mg, or kg)")
    large: float = Field(500, description="Grams of a large customer")


class Output(BaseModel):
    spices: dict[str, float]
    most: str | None
    large: list[str]


def weight(text: str) -> float:
    amount, unit = text.split()
    return float(amount) * GRAMS[unit]


def orders(path: str) -> list[tuple[str, str, float]]:
    found = []
    for line in Path(path).read_text(encoding="utf-8").splitlines():
        if line.strip():
            customer, spice, amount = (part.strip() for part in line.split(";"))
            found.append((customer, spice, weight(amount)))
    return found


def add(sums: dict[str, float], key: str, grams: float) -> None:
    sums[key] = round(sums.get(key, 0) + grams, 3)


def run(input: Input) -> Output:
    spices: dict[str, float] = {}
    customers: dict[str, float] = {}
    for customer, spice, grams in orders(input.path):
        add(spices, spice, grams)
        add(customers, customer, grams)
    return Output(
        spices=spices,
        most=max(spices, key=lambda spice: spices[spice], default=None),
        large=sorted(name for name, grams in customers.items() if grams >= input.large),
    )
