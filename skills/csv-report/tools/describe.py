"""What the columns of a CSV file hold."""

from math import fsum

from _table import number, rows
from pydantic import BaseModel, Field

TOOL = {
    "name": "describe",
    "description": "For each column of a CSV file: filled cells, distinct values, range and mean of numbers",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="The CSV file, in the workspace")
    delimiter: str = Field(",", min_length=1, max_length=1)


class Column(BaseModel):
    name: str
    filled: int
    distinct: int
    minimum: float | None = Field(description="Null unless every filled cell is a number")
    maximum: float | None
    mean: float | None


class Output(BaseModel):
    rows: int
    columns: list[Column]


def run(input: Input) -> Output:
    """Columns stand in the order of the header; a file without data rows has none to describe."""
    cells: dict[str, list[str]] = {}
    count = 0
    for _, row in rows(input.path, input.delimiter):
        count += 1
        for name, text in row.items():
            cells.setdefault(name, []).append(text)
    return Output(rows=count, columns=[column(name, texts) for name, texts in cells.items()])


def column(name: str, texts: list[str]) -> Column:
    """The description of one column."""
    filled = [text for text in texts if text]
    values = numbers(filled)
    return Column(
        name=name,
        filled=len(filled),
        distinct=len(set(filled)),
        minimum=min(values, default=None),
        maximum=max(values, default=None),
        mean=fsum(values) / len(values) if values else None,
    )


def numbers(texts: list[str]) -> list[float]:
    """All of them as numbers, or none."""
    try:
        return [number(text, 0, "") for text in texts]
    except ValueError:
        return []
