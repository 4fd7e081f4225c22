"""Tax on a receipt."""

from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "tax_by_rate",
    "description": "The tax on a receipt's goods: net sum by tax rate, and the tax of each rate on that sum, rounded half up to the cent",
    "effects": ["read"],
    "dependencies": [],
}

CENT = Decimal("0.01")


class Input(BaseModel):
    path: str


class Output(BaseModel):
    net: dict[str, str]
    tax: dict[str, str]
    gross: str


def run(input: Input) -> Output:
    """Lines: article, pieces, net price of one, rate in percent. Pieces may be negative (taken back)."""
    net: dict[str, Decimal] = {}
    tax: dict[str, Decimal] = {}
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if not line.strip():
            continue
        _, pieces, price, rate = (cell.strip() for cell in line.split(","))
        value = int(pieces) * Decimal(price)
        net[rate] = net.get(rate, Decimal("0.00")) + value
    for rate, value in net.items():
        tax[rate] = (value * Decimal(rate) / 100).quantize(CENT, ROUND_HALF_UP)
    gross = sum(net.values(), Decimal("0.00")) + sum(tax.values(), Decimal("0.00"))
    return Output(
        net={rate: str(net[rate]) for rate in sorted(net, key=Decimal)},
        tax={rate: str(tax[rate]) for rate in sorted(tax, key=Decimal)},
        gross=str(gross),
    )
