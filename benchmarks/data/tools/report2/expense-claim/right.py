"""What of a claim is paid back."""

from decimal import Decimal
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "expense_claim",
    "description": "What a firm pays back of an expense claim, in cents: trains and buses in full, everything else by half; and what of it was public transport, the rest, and the days on which something was spent",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="Lines of the form: day kind amount")


class Output(BaseModel):
    paid_back: int
    public: int
    other: int
    days: list[str]


class Claim:
    public = 0
    other = 0

    def __init__(self) -> None:
        self.days: set[str] = set()

    def spend(self, day: str, kind: str, cents: int) -> None:
        self.days.add(day)
        if kind == "train" or kind == "bus":
            self.public += cents
        else:
            self.other += cents

    def paid_back(self) -> int:
        return self.public + self.other // 2


def cents(amount: str) -> int:
    return int(Decimal(amount) * 100)


def run(input: Input) -> Output:
    claim = Claim()
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            day, kind, amount = line.split()
            claim.spend(day, kind, cents(amount))
    return Output(paid_back=claim.paid_back(), public=claim.public, other=claim.other, days=sorted(claim.days))
