"""Amounts in another currency, by way of the euro."""

from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "currency_cross",
    "description": "Convert amounts between currencies by rates that say what one euro is worth",
    "effects": ["read"],
    "dependencies": [],
}

WHOLE = {"JPY", "KRW", "ISK"}


class Input(BaseModel):
    rates: str = Field(description="Lines: currency rate; a rate says what one euro is worth")
    amounts: list[str] = Field(description="Such as 12.50 USD")
    to: str = "EUR"


class Output(BaseModel):
    amounts: list[float]
    total: float


def table(path: str) -> dict[str, Decimal]:
    rates = {"EUR": Decimal(1)}
    for line in Path(path).read_text(encoding="utf-8").splitlines():
        if line.strip():
            currency, rate = line.split()
            rates[currency.upper()] = Decimal(rate)
    return rates


def run(input: Input) -> Output:
    rates = table(input.rates)
    to = input.to.upper()
    unit = Decimal(1) if to in WHOLE else Decimal("0.01")
    amounts = []
    for text in input.amounts:
        amount, currency = text.split()
        euro = Decimal(amount) * rates[currency.upper()]
        amounts.append((euro * rates[to]).quantize(unit, rounding=ROUND_HALF_UP))
    return Output(amounts=[float(amount) for amount in amounts], total=float(sum(amounts)))
