"""Totals of an invoice in JSON."""

import json
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "invoice_total",
    "description": "Net, tax and gross amount of an invoice",
    "effects": ["read"],
    "dependencies": [],
}

CENT = Decimal("0.01")


class Input(BaseModel):
    path: str = Field(description="JSON with lines (item, price, count), shipping and perhaps discount_percent")
    vat_percent: int = 19


class Output(BaseModel):
    net: str
    vat: str
    gross: str


def cents(value: Decimal) -> Decimal:
    return value.quantize(CENT, rounding=ROUND_HALF_UP)


def run(input: Input) -> Output:
    """The discount lowers the goods, not the shipping; tax is due on what is left and on shipping."""
    invoice = json.loads(Path(input.path).read_text(encoding="utf-8"))
    goods = sum((Decimal(line["price"]) * line["count"] for line in invoice["lines"]), Decimal(0))
    discount = goods * Decimal(invoice.get("discount_percent", 0)) / 100
    net = cents(goods - discount + Decimal(invoice["shipping"]))
    vat = cents(net * input.vat_percent / 100)
    return Output(net=str(net), vat=str(vat), gross=str(net + vat))
