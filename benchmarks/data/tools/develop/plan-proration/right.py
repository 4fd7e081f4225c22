"""The bill of a month in which the plan changed."""

import calendar
from datetime import date
from decimal import ROUND_HALF_UP, Decimal

from pydantic import BaseModel, Field

TOOL = {
    "name": "plan_proration",
    "description": "Bill a month by days: the old price up to the day before the change, the new price from that day on; each part rounded half up to the cent",
    "effects": ["pure"],
    "dependencies": [],
}


CENT = Decimal("0.01")


class Input(BaseModel):
    old_price: Decimal = Field(ge=0)
    new_price: Decimal = Field(ge=0)
    change: date


class Output(BaseModel):
    old_part: Decimal
    new_part: Decimal
    total: Decimal


def part(price: Decimal, days: int, of: int) -> Decimal:
    return (price * days / of).quantize(CENT, ROUND_HALF_UP)


def run(input: Input) -> Output:
    month = calendar.monthrange(input.change.year, input.change.month)[1]
    before = input.change.day - 1
    after = month - before
    old = part(input.old_price, before, month)
    new = part(input.new_price, after, month)
    return Output(old_part=old, new_part=new, total=old + new)
