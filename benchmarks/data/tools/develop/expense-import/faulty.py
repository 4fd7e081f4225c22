"""Expenses from a list with German numbers."""

import csv
from datetime import datetime
from decimal import Decimal
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "expense_import",
    "description": "Totals by account from a list of expenses with dates and amounts as they are written in Germany",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="Datum;Konto;Betrag, such as 03.02.2026;rent;1.250,00 EUR")
    month: str = Field("", description="YYYY-MM, or nothing for all")


class Output(BaseModel):
    totals: dict[str, str]
    total: str
    largest: str | None = Field(description="Day and account of the highest amount")


def amount(text: str) -> Decimal:
    digits = text.removesuffix("EUR").strip()
    return Decimal(digits.replace(",", "."))


def run(input: Input) -> Output:
    totals: dict[str, Decimal] = {}
    largest: tuple[Decimal, str] | None = None
    with Path(input.path).open(newline="", encoding="utf-8-sig") as handle:
        for row in csv.DictReader(handle, delimiter=";"):
            day = datetime.strptime(row["Datum"], "%d.%m.%Y").date()
            if not day.isoformat().startswith(input.month):
                continue
            value = amount(row["Betrag"])
            totals[row["Konto"]] = totals.get(row["Konto"], Decimal(0)) + value
            if largest is None or value > largest[0]:
                largest = value, f"{day} {row['Konto']}"
    return Output(
        totals={account: f"{totals[account]:.2f}" for account in sorted(totals)},
        total=f"{sum(totals.values(), Decimal(0)):.2f}",
        largest=largest[1] if largest else None,
    )
