"""Taxes of the lines of an invoice."""

from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path

from _money import amount, shown
from pydantic import BaseModel, Field

TOOL = {
    "name": "line_taxes",
    "description": "Net, tax and gross of invoice lines, where the tax of each line is rounded to whole cents, half a cent upwards",
    "effects": ["read"],
    "dependencies": [],
}

CENT = Decimal("0.01")
RATES = {"A": Decimal("0.19"), "B": Decimal("0.07"), "C": Decimal("0.05"), "-": Decimal(0)}


class Input(BaseModel):
    path: str = Field(description="Lines of the form: what | count | price | class of tax")


class Output(BaseModel):
    net: str
    tax: str
    gross: str
    lines: int


def tax_of(net: Decimal, kind: str) -> Decimal:
    return (net * RATES[kind]).quantize(CENT, rounding=ROUND_HALF_UP)


def run(input: Input) -> Output:
    net = tax = Decimal(0)
    count = 0
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if not line.strip():
            continue
        _, number, price, kind = (part.strip() for part in line.split("|"))
        sum_of_line = amount(price) * int(number)
        net += sum_of_line
        tax += tax_of(sum_of_line, kind or "-")
        count += 1
    return Output(net=shown(net), tax=shown(tax), gross=shown(net + tax), lines=count)
