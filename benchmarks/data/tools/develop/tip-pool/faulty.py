"""Splits the tips of an evening by hours worked, to the cent."""

from decimal import Decimal

from pydantic import BaseModel

TOOL = {
    "name": "tip_pool",
    "description": "Tips in cents shared by hours; cents left over go one each to the largest remainders, then by name",
    "effects": ["pure"],
    "dependencies": [],
}


class Input(BaseModel):
    tips: list[Decimal]
    hours: dict[str, int]


class Output(BaseModel):
    cents: dict[str, int]
    paid_out: int
    per_hour: int


def share(total: int, hours: dict[str, int]) -> dict[str, int]:
    worked = sum(hours.values())
    cents = {}
    for name, count in hours.items():
        cents[name] = total * count // worked
    return cents


def run(input: Input) -> Output:
    total = int(sum(input.tips) * 100)
    hours = {name: count for name, count in input.hours.items() if count > 0}
    if not hours:
        return Output(cents={}, paid_out=0, per_hour=0)
    cents = share(total, hours)
    return Output(
        cents=cents,
        paid_out=sum(cents.values()),
        per_hour=total // sum(hours.values()),
    )
