"""Sums of an order's lines."""

from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal


@dataclass(frozen=True)
class Line:
    article: str
    amount: Decimal
    rate: Decimal


def cents(amount: Decimal) -> Decimal:
    """Rounded to two decimals, half a cent up."""
    return amount.quantize(Decimal("0.01"), rounding=ROUND_HALF_UP)


def discounted(line: Line, percent: Decimal) -> Decimal:
    """A line's amount after the discount."""
    return cents(line.amount * (100 - percent) / 100)


def tax_by_rate(lines: list[Line], percent: Decimal) -> dict[Decimal, Decimal]:
    """The tax of all lines that have the same rate; lines without a tax have none."""
    bases: dict[Decimal, Decimal] = {}
    for line in lines:
        if line.rate:
            bases[line.rate] = bases.get(line.rate, Decimal(0)) + discounted(line, percent)
    return {rate: cents(base * rate / 100) for rate, base in bases.items()}
