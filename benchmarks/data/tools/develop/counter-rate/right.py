"""Growth of a counter that may start again at 0."""

import csv
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "counter_rate",
    "description": "How much a counter grew in all, its mean and highest rate a second (three decimals), and its restarts: where a value is lower than the one before, the counter began again at 0 and has grown by the new value",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="CSV with second and value, in the order of time")


class Output(BaseModel):
    growth: int
    mean: float
    highest: float
    restarts: int


def run(input: Input) -> Output:
    with Path(input.path).open(encoding="utf-8", newline="") as file:
        rows = [(int(row["second"]), int(row["value"])) for row in csv.DictReader(file)]
    growth, highest, restarts = 0, 0.0, 0
    for (before, old), (after, new) in zip(rows, rows[1:]):
        if new < old:
            restarts += 1
            step = new
        else:
            step = new - old
        growth += step
        if after > before:
            highest = max(highest, step / (after - before))
    span = rows[-1][0] - rows[0][0] if rows else 0
    return Output(
        growth=growth,
        mean=round(growth / span, 3) if span else 0.0,
        highest=round(highest, 3),
        restarts=restarts,
    )
