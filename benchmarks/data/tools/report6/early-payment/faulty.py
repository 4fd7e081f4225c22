"""Discounts for invoices that were paid early."""

from datetime import date

from pydantic import BaseModel, Field

TOOL = {
    "name": "early_payment",
    "description": "Discounts for invoices that were paid early, the last day included, and those paid after 30 days",
    "effects": ["read"],
    "dependencies": [],
}
LATE_DAYS = 30


class Invoice(BaseModel):
    number: str
    issued: str
    cents: int
    paid: str | None = None


class Input(BaseModel):
    invoices: list[Invoice]
    days: int = Field(10, description="within which a payment is early")
    percent: int = Field(2, description="off for an early payment")


class Output(BaseModel):
    due: dict[str, int]
    saved: int
    late: list[str]
    open: list[str]


def discount(cents: int, percent: int) -> int:
    """Half a cent is rounded up."""
    return (cents * percent + 50) // 100


def run(input: Input) -> Output:
    due = {}
    saved = 0
    late, waiting = [], []
    for invoice in input.invoices:
        due[invoice.number] = invoice.cents
        if not invoice.paid:
            waiting.append(invoice.number)
            continue
        taken = (date.fromisoformat(invoice.paid) - date.fromisoformat(invoice.issued)).days
        if taken < input.days:
            less = discount(invoice.cents, input.percent)
            due[invoice.number] -= less
            saved += less
        elif taken > LATE_DAYS:
            late.append(invoice.number)
    return Output(due=due, saved=saved, late=late, open=waiting)
