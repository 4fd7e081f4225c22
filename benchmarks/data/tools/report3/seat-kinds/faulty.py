"""Kinds of seats."""

from pathlib import Path
from typing import NamedTuple

from pydantic import BaseModel, Field

TOOL = {
    "name": "seat_kinds",
    "description": "Seats of a list by their kind: a row letter with a number, a number alone for standing, or a name of a box",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="One seat a line: B12, 340 or Royal box")


class Output(BaseModel):
    rows: dict[str, list[int]]
    standing: list[int]
    boxes: list[str]


class Seat(NamedTuple):
    row: str
    number: int


def seat(text: str) -> Seat | None:
    """A seat of a row; None where it is not one."""
    first, rest = text[0], text[1:]
    if first.isalpha and rest.isdigit():
        return Seat(first.upper(), int(rest))
    return None


def run(input: Input) -> Output:
    rows: dict[str, list[int]] = {}
    standing, boxes = [], []
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        text = line.strip()
        if not text:
            continue
        found = seat(text)
        if found:
            rows.setdefault(found.row, []).append(found.number)
        elif text.isdigit():
            standing.append(int(text))
        else:
            boxes.append(text)
    return Output(rows={row: sorted(rows[row]) for row in sorted(rows)}, standing=standing, boxes=boxes)
