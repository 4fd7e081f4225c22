"""A table of two questions."""

import csv
from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "survey_crosstab",
    "description": "Counts the answers in a table by two of its columns: one line for each value of the first, one number for each value of the second",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str
    rows: str
    columns: str


class Output(BaseModel):
    head: list[str]
    lines: list[list[str | int]]
    totals: list[int]


def run(input: Input) -> Output:
    """Values in the order of the alphabet; rows of the table without one of the two are left out."""
    counts: dict[tuple[str, str], int] = {}
    with Path(input.path).open(newline="", encoding="utf-8") as handle:
        for row in csv.DictReader(handle):
            pair = (row[input.rows].strip(), row[input.columns].strip())
            if pair[0] and pair[1]:
                counts[pair] = counts.get(pair, 0) + 1
    left = sorted({first for first, _ in counts})
    head = sorted({second for _, second in counts})
    lines: list[list[str | int]] = []
    totals = [0] * len(head)
    for first in left:
        numbers = [counts[first, second] for second in head]
        totals = [total + number for total, number in zip(totals, numbers)]
        lines.append([first, *numbers])
    return Output(head=head, lines=lines, totals=totals)
