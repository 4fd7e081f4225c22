"""Tells how long people wait at the desks of an office."""

import csv
from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "wait_medians",
    "description": "The median of the minutes that people waited, of each desk of a CSV file, by the name of the desk; a row without minutes (nobody took the time) does not count",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str
    by: str = "desk"
    column: str = "minutes"


class Output(BaseModel):
    medians: dict[str, float]
    rows: int


def median(values: list[int]) -> float:
    """The one in the middle, or the mean of the two there."""
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle]


def run(input: Input) -> Output:
    waits: dict[str, list[int]] = {}
    text = Path(input.path).read_text(encoding="utf-8")
    for row in csv.DictReader(text.splitlines()):
        if row[input.column].strip():
            waits.setdefault(row[input.by].strip(), []).append(int(row[input.column]))
    medians = {name: median(waits[name]) for name in sorted(waits)}
    return Output(medians=medians, rows=sum(map(len, waits.values())))
