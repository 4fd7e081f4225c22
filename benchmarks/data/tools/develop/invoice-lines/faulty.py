"""Numbers the lines of invoices."""

from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "invoice_lines",
    "description": "The lines of invoices numbered from 1 within each invoice (lines of one invoice stand together), with the sum of each in cents, and the invoice with the most lines",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="Lines of the form: invoice;article;number;price")


class Output(BaseModel):
    lines: list[str]
    sums: dict[str, int]
    longest: str


def cents(price: str) -> int:
    whole, _, part = price.partition(".")
    return int(whole) * 100 + int(part.ljust(2, "0") or 0)


def run(input: Input) -> Output:
    lines: list[str] = []
    sums: dict[str, int] = {}
    counts: dict[str, int] = {}
    current = ""
    position = 0
    for row in Path(input.path).read_text(encoding="utf-8").splitlines():
        if not row.strip():
            continue
        invoice, article, number, price = row.split(";")
        if invoice != current:
            current = invoice
        position += 1
        counts[invoice] = counts.get(invoice, 0) + 1
        lines.append(f"{invoice}/{position} {article}")
        sums[invoice] = sums.get(invoice, 0) + int(number) * cents(price)
    longest = max(counts, key=lambda invoice: counts[invoice], default="")
    return Output(lines=lines, sums=sums, longest=longest)
