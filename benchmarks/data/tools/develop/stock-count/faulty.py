"""Differences of a stocktaking."""

import csv
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "stock_count",
    "description": "Differences between the books and the counted stock of a shop, and their worth",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    books: str = Field(description="CSV with article, number and price")
    counted: str = Field(description="Lines: article number; an article may be counted in several places")


class Output(BaseModel):
    differences: dict[str, int] = Field(description="Counted less booked, where they differ")
    worth: float


def run(input: Input) -> Output:
    """What was not counted is gone; what is not in the books has no price."""
    booked: dict[str, int] = {}
    prices: dict[str, float] = {}
    with Path(input.books).open(newline="", encoding="utf-8") as handle:
        for row in csv.DictReader(handle):
            booked[row["article"]] = int(row["number"])
            prices[row["article"]] = float(row["price"])
    counted: dict[str, int] = {}
    for line in Path(input.counted).read_text(encoding="utf-8").splitlines():
        if line.strip():
            article, number = line.rsplit(None, 1)
            counted[article] = counted.get(article, 0) + int(number)
    differences = {}
    worth = 0.0
    for article in sorted({*booked, *counted}):
        difference = counted.get(article, 0) - booked[article]
        if difference:
            differences[article] = difference
            worth += difference * prices.get(article, 0.0)
    return Output(differences=differences, worth=round(worth, 2))
