"""What a supplier's list says."""

import csv
from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "supplier_prices",
    "description": "The prices in cents of the wanted articles in a supplier's list, as a spreadsheet writes it (sku, name and price in any order, with semicolons or commas), the articles that it does not have, and the name of the dearest one found",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str
    wanted: list[str]


class Output(BaseModel):
    prices: dict[str, int]
    missing: list[str]
    dearest: str | None


def cents(text: str) -> int:
    whole, _, rest = text.strip().replace(",", ".").partition(".")
    return int(whole or 0) * 100 + int(rest.ljust(2, "0")[:2])


def run(input: Input) -> Output:
    """The last line of an article counts. The price may have a comma or a point, but no sign."""
    text = Path(input.path).read_text(encoding="utf-8-sig")
    lines = text.splitlines()
    separator = ";" if lines and ";" in lines[0] else ","
    rows = {row["sku"]: row for row in csv.DictReader(lines, delimiter=separator)}
    prices = {}
    for sku in input.wanted:
        if sku in rows:
            prices[sku] = cents(rows[sku]["price"])
    dearest = max(prices, key=lambda sku: prices[sku], default=None)
    return Output(
        prices=prices,
        missing=[sku for sku in input.wanted if sku not in rows],
        dearest=rows[dearest]["name"] if dearest is not None else None,
    )
