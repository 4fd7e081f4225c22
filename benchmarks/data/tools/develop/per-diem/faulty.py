"""Meal money of journeys."""

from datetime import datetime
from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "per_diem",
    "description": "The meal money of each journey in cents: the whole rate for a full day, the small one for the days of departure and of return, and for a journey of one day the small one if it took more than eight hours; a breakfast that was given takes a fifth of the whole rate off",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str
    whole: int = 2800
    small: int = 1400


class Output(BaseModel):
    amounts: list[int]
    days: int
    total: int


def run(input: Input) -> Output:
    """Lines: departure, return, breakfasts; with tabs between. Nobody owes anything for breakfasts."""
    amounts = []
    days = 0
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if not line.strip():
            continue
        departure, back, breakfasts = line.split("\t")
        start = datetime.fromisoformat(departure)
        end = datetime.fromisoformat(back)
        nights = (end.date() - start.date()).days
        amount = 2 * input.small + max(nights - 1, 0) * input.whole
        amount -= int(breakfasts) * input.whole // 5
        amounts.append(max(amount, 0))
        days += nights + 1
    return Output(amounts=amounts, days=days, total=sum(amounts))
