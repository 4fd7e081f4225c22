"""Ingredients added up."""

import re
from fractions import Fraction
from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "ingredient_sum",
    "description": "Adds the amounts of the same ingredient in the same unit, which may be whole, decimal, broken (3/4) or mixed (1 1/2), and multiplies them",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str
    factor: int = 1


class Output(BaseModel):
    amounts: list[str]
    lines: int


LINE = re.compile(r"(?P<amount>[\d ./]*\d)\s+(?P<unit>[a-z]+)\s+(?P<what>.+)")


def said(value: Fraction) -> str:
    """As a cook writes it: 1 1/2."""
    whole, rest = divmod(value, 1)
    if not rest:
        return str(whole)
    return f"{whole} {rest}" if whole else str(rest)


def run(input: Input) -> Output:
    """In the order in which the ingredients come; a line of another form is not counted."""
    sums: dict[tuple[str, str], Fraction] = {}
    count = 0
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        match = LINE.fullmatch(line.strip())
        if match is None:
            continue
        count += 1
        amount = Fraction(match["amount"])
        key = (match["unit"], match["what"])
        sums[key] = sums.get(key, Fraction(0)) + amount
    amounts = [f"{said(value * input.factor)} {unit} {what}" for (unit, what), value in sums.items()]
    return Output(amounts=amounts, lines=count)
