"""Duty on the sale of homes."""

from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "stamp_duty",
    "description": "The duty on the sale of each home, where each band's percentage is charged on the part of the price that lies in the band; the duty on all, and what share of all prices it is, in percent",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="Lines of the form: address;price")
    bands: list[tuple[int, int]] = Field(
        [(250_000, 5), (925_000, 10), (1_500_000, 12)],
        description="The price above which a band begins, and its percentage, the lowest first",
    )


class Output(BaseModel):
    duties: dict[str, float]
    total: float
    share: float


def sales(path: str) -> dict[str, int]:
    found = {}
    for line in Path(path).read_text(encoding="utf-8").splitlines():
        if line.strip():
            address, price = line.split(";")
            found[address.strip()] = int(price)
    return found


def duty(price: int, bands: list[tuple[int, int]]) -> float:
    owed = 0
    for number, (start, percent) in enumerate(bands):
        end = bands[number + 1][0] if number + 1 < len(bands) else price
        if price > start:
            owed += (min(price, end) - start) * percent
    return owed / 100


def run(input: Input) -> Output:
    """Below the lowest band there is no duty."""
    prices = sales(input.path)
    duties = {address: duty(price, input.bands) for address, price in prices.items()}
    total = sum(duties.values())
    worth = sum(prices.values())
    return Output(
        duties=duties,
        total=round(total, 2),
        share=round(100 * total / worth, 2) if worth else 0,
    )
