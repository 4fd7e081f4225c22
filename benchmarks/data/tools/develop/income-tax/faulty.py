"""Income tax by brackets; couples split their incomes."""

from pydantic import BaseModel, Field

TOOL = {
    "name": "income_tax",
    "description": "Income tax of persons, alone or as couple",
    "effects": ["pure"],
    "dependencies": [],
}

BRACKETS = [(10_000, 0.0), (40_000, 0.2), (float("inf"), 0.4)]


class Input(BaseModel):
    incomes: dict[str, int] = Field(description="Person to income of the year")
    married: bool = Field(False, description="All named persons are one couple")


class Output(BaseModel):
    tax: float
    rate_percent: float


def tax_of(income: float) -> float:
    """Each bracket's rate applies to the part of the income inside the bracket."""
    tax = floor = 0.0
    for ceiling, rate in BRACKETS:
        if income > floor:
            tax += (min(income, ceiling) - floor) * rate
        floor = ceiling
    return tax


def run(input: Input) -> Output:
    """A couple pays twice the tax on half of its common income."""
    total = sum(input.incomes.values())
    if input.married:
        tax = tax_of(total / 2)
    else:
        tax = sum(tax_of(income) for income in input.incomes.values())
    rate = 100 * tax / total if total else 0.0
    return Output(tax=round(tax, 2), rate_percent=round(rate, 2))
