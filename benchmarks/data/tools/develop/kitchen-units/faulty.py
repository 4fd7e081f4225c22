"""Volumes in a recipe."""

from fractions import Fraction
from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "kitchen_units",
    "description": "The volume in millilitres of a recipe's ingredients (lines: amount unit of ingredient), the sum, and the ingredients without a volume",
    "effects": ["read"],
    "dependencies": [],
}

ML = {"cup": 240, "tbsp": 15, "tsp": 5, "ml": 1, "l": 1000, "pint": 480, "drop": Fraction(1, 20)}


class Input(BaseModel):
    path: str


class Output(BaseModel):
    volumes: dict[str, float]
    total: float
    without: list[str]


def amount(text: str) -> Fraction:
    """A number such as 2, 1.5, 1/2 or 1+1/2."""
    return sum((Fraction(part) for part in text.split("+")), Fraction(0))


def run(input: Input) -> Output:
    volumes: dict[str, Fraction] = {}
    without = []
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        words = line.split()
        if len(words) > 3 and words[2] == "of":
            unit = words[1].lower()
            name = " ".join(words[3:])
            volumes[name] = volumes.get(name, Fraction(0)) + amount(words[0]) * ML[unit]
        elif words:
            without.append(" ".join(words[1:]))
    total = round(float(sum(volumes.values())), 2)
    return Output(
        volumes={name: round(float(value), 2) for name, value in volumes.items()}, total=total, without=without
    )
