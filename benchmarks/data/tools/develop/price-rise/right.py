"""Raises prices."""

from decimal import ROUND_HALF_UP, Decimal

from pydantic import BaseModel, Field

TOOL = {
    "name": "price_rise",
    "description": "Prices raised by a percentage and rounded to cents, half a cent up as in commerce (0.125 to 0.13), each and in sum, and the sum of the rises",
    "effects": ["pure"],
    "dependencies": [],
}

CENT = Decimal("0.01")


class Input(BaseModel):
    prices: list[Decimal]
    percent: Decimal = Field(ge=0)


class Output(BaseModel):
    prices: list[str]
    total: str
    rise: str


def raised(price: Decimal, percent: Decimal) -> Decimal:
    if price < 0:
        raise ValueError(f"a price of {price} is negative")
    return (price * (100 + percent) / 100).quantize(CENT, rounding=ROUND_HALF_UP)


def run(input: Input) -> Output:
    new = [raised(price, input.percent) for price in input.prices]
    total = sum(new, Decimal("0.00"))
    rise = total - sum(input.prices, Decimal("0.00"))
    return Output(
        prices=[str(price) for price in new],
        total=str(total),
        rise=str(rise.quantize(CENT)),
    )
