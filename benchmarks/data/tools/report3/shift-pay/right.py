"""Pay for shifts."""

import json
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "shift_pay",
    "description": "Pay for shifts by who worked them, where a shift may have a rate of its own (0 for volunteers)",
    "effects": ["read"],
    "dependencies": [],
}


class Shift(BaseModel):
    who: str
    hours: float
    rate: float | None = None


class Input(BaseModel):
    path: str = Field(description="A JSON list of shifts with who, hours and, if it is another than usual, rate")
    usual: float = 15.0


class Output(BaseModel):
    pay: dict[str, float]
    hours: float


def pay(shift: Shift, usual: float) -> float:
    rate = usual if shift.rate is None else shift.rate
    return shift.hours * rate


def run(input: Input) -> Output:
    shifts = [Shift(**item) for item in json.loads(Path(input.path).read_text(encoding="utf-8"))]
    found: dict[str, float] = {}
    for shift in shifts:
        found[shift.who] = found.get(shift.who, 0.0) + pay(shift, input.usual)
    return Output(
        pay={who: round(sum_of, 2) for who, sum_of in sorted(found.items())},
        hours=sum(shift.hours for shift in shifts),
    )
