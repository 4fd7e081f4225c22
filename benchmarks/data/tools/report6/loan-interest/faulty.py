"""Interest on loans."""

from decimal import ROUND_HALF_UP, Decimal

from pydantic import BaseModel, Field

TOOL = {
    "name": "loan_interest",
    "description": "Interest on loans, added each month, quarter or year, in cents",
    "effects": ["read"],
    "dependencies": [],
}
A_YEAR = {"month": 12, "quarter": 3, "year": 1}


class Loan(BaseModel):
    name: str
    cents: int
    percent: float = Field(description="a year")
    period: str = Field("month", description="month, quarter or year")
    count: int = Field(description="periods that have passed")


class Input(BaseModel):
    loans: list[Loan]


class Output(BaseModel):
    owed: dict[str, int]
    interest: int
    dearest: str | None


def rounded(value: Decimal) -> int:
    return int(value.quantize(Decimal(1), rounding=ROUND_HALF_UP))


def grown(loan: Loan) -> int:
    """What is owed after the periods."""
    share = Decimal(str(loan.percent)) / 100 / A_YEAR[loan.period]
    owed = loan.cents
    for _ in range(loan.count):
        owed += rounded(owed * share)
    return owed


def run(input: Input) -> Output:
    owed: dict[str, int] = {}
    interest = 0
    dearest = (0, "")
    for loan in input.loans:
        now = grown(loan)
        owed[loan.name] = owed.get(loan.name, 0) + now
        interest += now - loan.cents
        if now - loan.cents > dearest[0]:
            dearest = (now - loan.cents, loan.name)
    return Output(owed=owed, interest=interest, dearest=dearest[1] or None)
