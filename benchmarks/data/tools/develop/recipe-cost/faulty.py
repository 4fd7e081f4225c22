"""Costs of recipes."""

import csv
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "recipe_cost",
    "description": "What the ingredients of recipes cost, by prices for a kilogram, a litre or a piece",
    "effects": ["read"],
    "dependencies": [],
}

UNITS = {"kg": "kg", "g": "kg", "l": "l", "cl": "l", "ml": "l", "pc": "pc"}


class Input(BaseModel):
    prices: str = Field(description="CSV with item, price and unit (kg, l or pc)")
    recipe: str = Field(description="Lines: amount unit item, as in 250 g flour")
    portions: int = Field(1, ge=1)


class Output(BaseModel):
    cost: float
    portion: float
    unknown: list[str] = Field(description="Items without a price, or with one for another kind of unit")


def run(input: Input) -> Output:
    prices: dict[str, tuple[float, str]] = {}
    with Path(input.prices).open(newline="", encoding="utf-8") as handle:
        for row in csv.DictReader(handle):
            prices[row["item"].strip().lower()] = (float(row["price"]), row["unit"])
    cost = 0.0
    unknown = []
    for line in Path(input.recipe).read_text(encoding="utf-8").splitlines():
        if not line.strip():
            continue
        amount, unit, item = line.split(None, 2)
        price, base = prices.get(item.strip().lower(), (0.0, ""))
        if not base or UNITS.get(unit, "") != base:
            unknown.append(item.strip())
            continue
        cost += float(amount) * price
    return Output(cost=round(cost, 2), portion=round(cost / input.portions, 2), unknown=unknown)
