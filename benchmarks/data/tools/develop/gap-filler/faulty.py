"""Gaps of a series, filled by interpolation."""

from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "gap_filler",
    "description": "Fill the gaps of an hourly series of measurements, if they are short enough, on a straight line between their neighbours",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="One value a line; - or an empty line is a missing one")
    longest: int = Field(3, description="Missing values in a row that are filled; those at the begin and the end are not")


class Output(BaseModel):
    values: list[float | None]
    filled: int


def fill(values: list[float | None], begin: int, end: int) -> None:
    """Fill the places from begin up to end, which is that of the next value."""
    for place in range(begin, end):
        values[place] = values[begin - 1]


def run(input: Input) -> Output:
    text = Path(input.path).read_text(encoding="utf-8")
    values: list[float | None] = []
    for line in text.splitlines():
        values.append(None if line.strip() in ("", "-") else float(line))
    filled = 0
    last = -1
    for place in range(len(values)):
        if values[place] is None:
            continue
        gap = place - last - 1
        if last >= 0 and 0 < gap <= input.longest:
            fill(values, last + 1, place)
            filled += gap
        last = place
    return Output(values=values, filled=filled)
