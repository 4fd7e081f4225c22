"""Rounds to significant digits."""

from decimal import ROUND_HALF_UP, Decimal

from pydantic import BaseModel, Field

TOOL = {
    "name": "sig_figs",
    "description": "Round measured values (texts) half up to some significant digits and write them without an exponent, with the zeros that are significant after the point",
    "effects": ["pure"],
    "dependencies": [],
}


class Input(BaseModel):
    values: list[str]
    digits: int = Field(3, ge=1, le=12)


class Output(BaseModel):
    rounded: list[str]
    total: str


def rounded(value: Decimal, digits: int) -> Decimal:
    if not value:
        return Decimal(0)
    step = Decimal(1).scaleb(value.adjusted() - digits + 1)
    result = value.quantize(step, ROUND_HALF_UP)
    if result.adjusted() > value.adjusted():  # 9.96 became 10.0
        result = result.quantize(step.scaleb(1), ROUND_HALF_UP)
    return result


def run(input: Input) -> Output:
    values = [Decimal(text.strip()) for text in input.values]
    results = [rounded(value, input.digits) for value in values]
    total = rounded(sum(values, Decimal(0)), input.digits)
    return Output(rounded=[f"{result:f}" for result in results], total=f"{total:f}")
