"""Shares of a sum."""

import json
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "share_table",
    "description": "Numbers of a list as they are, or as their share of the sum in percent",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="A JSON object with a number, or a text of one, for each name")
    relative: bool = False
    places: int = Field(1, ge=0, le=4)


class Output(BaseModel):
    rows: list[tuple[str, float]]
    sum: float


def number(value: object) -> float:
    return float(str(value).replace(",", ".").rstrip("%"))


def run(input: Input) -> Output:
    data = json.loads(Path(input.path).read_text(encoding="utf-8"))
    names = sorted(data)
    values = list(map(number, (data[name] for name in names)))
    total = sum(values) if input.relative else 0.0
    if input.relative and total:
        values = [100 * value / total for value in values]
    rows = [(name, round(value, input.places)) for name, value in zip(names, values, strict=False)]
    return Output(rows=rows, sum=round(sum(value for _, value in rows), input.places))
