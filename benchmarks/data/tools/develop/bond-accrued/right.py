"""Accrued interest of a bond, 30/360."""

from datetime import date

from pydantic import BaseModel, Field

TOOL = {
    "name": "bond_accrued",
    "description": "Days by the American 30/360 rule (no February rule) between two dates, and the interest accrued in them",
    "effects": ["pure"],
    "dependencies": [],
}


class Input(BaseModel):
    face: float
    coupon: float = Field(description="percent a year")
    last: date = Field(description="date of the last coupon")
    settle: date


class Output(BaseModel):
    days: int
    interest: float
    per_day: float


def days_360(start: date, end: date) -> int:
    first, second = start.day, end.day
    if first == 31:
        first = 30
    if second == 31 and first == 30:
        second = 30
    return 360 * (end.year - start.year) + 30 * (end.month - start.month) + second - first


def run(input: Input) -> Output:
    days = max(0, days_360(input.last, input.settle))
    per_day = input.face * input.coupon / 100 / 360
    return Output(days=days, interest=round(per_day * days, 2), per_day=round(per_day, 4))
