"""Gives receipts their numbers."""

import json
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "receipt_numbers",
    "description": "Gives out the next numbers of a series of receipts (A-2024-0018) and keeps in a file how far each series has come; each year begins at 1, and a year before the last one of its series is refused",
    "effects": ["read", "write"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="How far the series have come; it need not be there yet")
    series: str = Field(min_length=1)
    year: int
    count: int = Field(1, ge=1)


class Output(BaseModel):
    numbers: list[str]


def load(path: Path) -> dict[str, list[int]]:
    """The year and the last number of each series."""
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def run(input: Input) -> Output:
    path = Path(input.path)
    state = load(path)
    year, last = state.get(input.series, [input.year, 0])
    if input.year < year:
        raise ValueError(f"{input.series}: {year} has begun")
    given = range(last + 1, last + 1 + input.count)
    state[input.series] = [input.year, last + input.count]
    path.write_text(json.dumps(state, sort_keys=True), encoding="utf-8")
    return Output(numbers=[f"{input.series}-{input.year}-{number:04}" for number in given])
