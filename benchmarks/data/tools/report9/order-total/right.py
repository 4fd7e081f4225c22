"""What an order comes to."""

from decimal import Decimal
from pathlib import Path

from _sums import Line, cents, discounted, tax_by_rate
from pydantic import BaseModel, Field

TOOL = {
    "name": "order_total",
    "description": "Net, taxes by rate and total of an order, from lines ARTICLE;NUMBER;PRICE;TAX IN PERCENT, with a discount on the whole",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="One article a line, its price without tax")
    discount: Decimal = Field(default=Decimal(0), ge=0, le=100, description="Percent off each line")
    shipping: Decimal = Field(default=Decimal(0), ge=0, description="Not taxed and without discount")


class Output(BaseModel):
    net: str
    taxes: dict[str, str]
    total: str


def lines(text: str) -> list[Line]:
    found = []
    for row in text.splitlines():
        if not row.strip():
            continue
        article, number, price, rate = (part.strip() for part in row.split(";"))
        found.append(Line(article, int(number) * Decimal(price), Decimal(rate)))
    return found


def run(input: Input) -> Output:
    ordered = lines(Path(input.path).read_text(encoding="utf-8"))
    net = sum((discounted(line, input.discount) for line in ordered), Decimal(0))
    taxes = tax_by_rate(ordered, input.discount)
    total = net + sum(taxes.values(), Decimal(0)) + input.shipping
    return Output(
        net=str(cents(net)),
        taxes={f"{rate.normalize():f}": str(tax) for rate, tax in sorted(taxes.items())},
        total=str(cents(total)),
    )
