"""Cash amounts rounded to the smallest coin."""

from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "cash_rounding",
    "description": "What customers pay in cash, where the smallest coin is of five (or ten) cents",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="Lines: customer; price, price, ...; and card at the end where it is paid by card")
    coin: int = Field(5, description="Cents of the smallest coin")


class Output(BaseModel):
    to_pay: dict[str, float]
    gain: float = Field(description="What the shop gains by rounding")


def rounded(amount: Decimal, coin: int) -> Decimal:
    """The sum is rounded, not the prices; half a coin goes up."""
    coins = (amount * 100 / coin).quantize(Decimal(1), rounding=ROUND_HALF_UP)
    return coins * coin / 100


def run(input: Input) -> Output:
    to_pay: dict[str, float] = {}
    gain = Decimal(0)
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if ";" not in line:
            continue
        customer, rest = line.split(";", 1)
        parts = [part.strip() for part in rest.split(",") if part.strip()]
        by_card = parts[-1:] == ["card"]
        amount = sum((Decimal(part) for part in parts if part != "card"), Decimal(0))
        due = amount if by_card else rounded(amount, input.coin)
        gain += due - amount
        to_pay[customer.strip()] = float(due)
    return Output(to_pay=to_pay, gain=float(gain))
