"""Payments of a loan that is paid back in equal monthly rates."""

from pydantic import BaseModel, Field

TOOL = {
    "name": "loan_plan",
    "description": "Monthly payment and interest of a loan",
    "effects": ["pure"],
    "dependencies": [],
}


class Input(BaseModel):
    principal: float = Field(gt=0)
    yearly_percent: float = Field(ge=0)
    months: int = Field(gt=0)


class Output(BaseModel):
    payment: float
    interest: float
    after_half: float = Field(description="What is owed after half of the months")


def payment_of(principal: float, rate: float, months: int) -> float:
    growth = (1 + rate) ** months
    return principal * rate * growth / (growth - 1)


def run(input: Input) -> Output:
    """A month has a twelfth of the yearly interest."""
    rate = input.yearly_percent / 100 / 12
    payment = payment_of(input.principal, rate, input.months)
    owed, interest, after_half = input.principal, 0.0, 0.0
    for month in range(1, input.months + 1):
        charge = owed * rate
        interest += charge
        owed = owed + charge - payment
        if month == input.months // 2:
            after_half = owed
    return Output(payment=round(payment, 2), interest=round(interest, 2), after_half=round(after_half, 2))
