"""Statistics of the columns of a table."""

import csv
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "column_stats",
    "description": "Smallest, largest and mean value of each column of numbers",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="CSV; cells that are empty, - or n/a are missing")
    digits: int = 2


class Stats(BaseModel):
    count: int
    least: float | None
    most: float | None
    mean: float | None


class Output(BaseModel):
    columns: dict[str, Stats]


def number(cell: str | None) -> float | None:
    text = (cell or "").strip()
    if text.lower() in ("", "-", "n/a"):
        return None
    return float(text)


def run(input: Input) -> Output:
    columns = {}
    with Path(input.path).open(newline="", encoding="utf-8") as handle:
        reader = csv.DictReader(handle)
        names = reader.fieldnames or []
        rows = list(reader)
    for name in names:
        cells = [number(row[name]) for row in rows]
        values = [value for value in cells if value is not None]
        mean = round(sum(values) / len(values), input.digits) if values else None
        columns[name.strip()] = Stats(
            count=len(values), least=min(values, default=None), most=max(values, default=None), mean=mean
        )
    return Output(columns=columns)
