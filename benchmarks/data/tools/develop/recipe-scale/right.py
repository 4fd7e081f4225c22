"""A recipe for more or fewer people."""

from fractions import Fraction
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "recipe_scale",
    "description": "Amounts of a recipe for another number of people",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="'serves N', then lines: amount unit ingredient; amounts as 2, 1/2 or 1 1/2")
    people: int = Field(gt=0)


class Output(BaseModel):
    amounts: dict[str, str]


def parse(line: str) -> tuple[Fraction, str, str]:
    """Amount, unit and ingredient of a line."""
    words = line.split()
    amount = Fraction(words.pop(0))
    if "/" in words[0]:
        amount += Fraction(words.pop(0))
    return amount, words[0], " ".join(words[1:])


def written(amount: Fraction) -> str:
    whole, rest = divmod(amount.numerator, amount.denominator)
    if rest == 0:
        return str(whole)
    part = f"{rest}/{amount.denominator}"
    return f"{whole} {part}" if whole else part


def run(input: Input) -> Output:
    head, *lines = Path(input.path).read_text(encoding="utf-8").splitlines()
    factor = Fraction(input.people, int(head.split()[1]))
    amounts = {}
    for line in lines:
        amount, unit, ingredient = parse(line)
        amounts[ingredient] = f"{written(amount * factor)} {unit}"
    return Output(amounts=amounts)
