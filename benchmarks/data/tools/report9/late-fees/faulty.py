"""Fees for what was brought back late."""

from datetime import date, timedelta
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "late_fees",
    "description": "Fees for loans that came back late, from lines READER;ITEM;DUE;BACK, and who may not borrow any more",
    "effects": ["read"],
    "dependencies": [],
}

KINDS = {"book": Decimal("0.25"), "film": Decimal("1.00"), "game": Decimal("0.75")}


class Input(BaseModel):
    path: str = Field(description="One loan a line, days as YYYY-MM-DD; BACK is empty where it is not back yet")
    today: date = Field(description="Stands for the day of what is not back yet")
    grace: int = Field(default=2, ge=0, description="So many days late cost nothing")
    reduction: int = Field(default=0, ge=0, le=100, description="Percent off the sum of a reader")
    most: Decimal = Field(default=Decimal("10.00"), description="From this sum on a reader may not borrow")


class Output(BaseModel):
    fees: dict[str, str]
    barred: list[str]


def chargeable(due: date, back: date, grace: int) -> int:
    """Days that cost something: all of them but Sundays, once the days of grace are over."""
    late = (back - due).days
    if late <= grace:
        return 0
    days = (due + timedelta(days=number) for number in range(1, late + 1))
    return sum(day.isoweekday() != 7 for day in days)


def run(input: Input) -> Output:
    sums: dict[str, Decimal] = {}
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if not line.strip():
            continue
        reader, item, due, back = (part.strip() for part in line.split(";"))
        until = date.fromisoformat(back) if back else input.today
        days = chargeable(date.fromisoformat(due), until, input.grace)
        rate = KINDS.get(item.split()[0], KINDS["book"])
        sums[reader] = sums.get(reader, Decimal(0)) + days * rate
    reduced = {
        reader: (amount * (100 - input.reduction) / 100).quantize(Decimal("0.01"), ROUND_HALF_UP)
        for reader, amount in sums.items()
    }
    return Output(
        fees={reader: str(amount) for reader, amount in sorted(reduced.items()) if amount},
        barred=sorted(reader for reader, amount in reduced.items() if amount >= input.most),
    )
