"""Electricity: the first 100 kWh are cheap, those up to 300 dearer, the rest dearest (prices in cents)."""

from pydantic import BaseModel, Field

TOOL = {
    "name": "power_bill",
    "description": "Price of electricity by steps of use",
    "effects": ["pure"],
    "dependencies": [],
}

STEPS = [(100, 20), (300, 30)]
TOP = 45


class Input(BaseModel):
    previous: int = Field(ge=0, description="Meter reading in kWh")
    current: int
    base_fee: int = Field(0, description="Cents")


class Output(BaseModel):
    used: int
    parts: list[int]
    cents: int


def parts(used: int) -> list[int]:
    """Cents for the share of use in each step."""
    found, floor = [], 0
    for ceiling, price in STEPS:
        share = max(0, min(used, ceiling) - floor)
        found.append(share * price)
        floor = ceiling
    found.append(max(0, used - STEPS[0][0]) * TOP)
    return found


def run(input: Input) -> Output:
    if input.current < input.previous:
        raise ValueError("the meter cannot run backwards")
    used = input.current - input.previous
    shares = parts(used)
    return Output(used=used, parts=shares, cents=sum(shares) + input.base_fee)
