"""ABC analysis of a stock."""

import csv
from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "abc_stock",
    "description": "Classes A, B and C of a stock by the cumulated share of value, up to and including the limits in percent",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str
    a_percent: int = 80
    b_percent: int = 95


class Output(BaseModel):
    classes: dict[str, str]
    counts: dict[str, int]
    value_of_a: int


def run(input: Input) -> Output:
    items = {}
    with Path(input.path).open(newline="", encoding="utf-8") as handle:
        for row in csv.DictReader(handle):
            items[row["sku"]] = items.get(row["sku"], 0) + int(row["year_value"])

    total = sum(items.values())
    classes = {}
    so_far = 0
    for sku, value in sorted(items.items(), key=lambda item: (-item[1], item[0])):
        so_far += value
        if so_far * 100 <= total * input.a_percent:
            classes[sku] = "A"
        elif so_far * 100 <= total * input.b_percent:
            classes[sku] = "B"
        else:
            classes[sku] = "C"

    letters = list(classes.values())
    return Output(
        classes=classes,
        counts={letter: letters.count(letter) for letter in "ABC"},
        value_of_a=sum(items[sku] for sku, letter in classes.items() if letter == "A"),
    )
