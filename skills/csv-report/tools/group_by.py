"""Rows of a CSV file counted, and a column added up, for each value of another column."""

from math import fsum

from _table import number, rows
from pydantic import BaseModel, Field

TOOL = {
    "name": "group_by",
    "description": "Count the rows of a CSV file for each value of a column, and add up another column",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="The CSV file, in the workspace")
    key: str = Field(description="The column whose values make the groups")
    column: str | None = Field(None, description="The column to add up; without it rows are only counted")
    delimiter: str = Field(",", min_length=1, max_length=1)


class Group(BaseModel):
    key: str
    rows: int
    total: float | None


class Output(BaseModel):
    groups: list[Group] = Field(description="Sorted by key")


def run(input: Input) -> Output:
    """An empty cell in the key column makes a group of its own, with the key ""."""
    wanted = [input.key] if input.column is None else [input.key, input.column]
    counts: dict[str, int] = {}
    values: dict[str, list[float]] = {}
    for line, row in rows(input.path, input.delimiter, *wanted):
        key = row[input.key]
        counts[key] = counts.get(key, 0) + 1
        if input.column is not None and row[input.column]:
            values.setdefault(key, []).append(number(row[input.column], line, input.column))
    return Output(
        groups=[
            Group(
                key=key, rows=counts[key], total=None if input.column is None else fsum(values.get(key, []))
            )
            for key in sorted(counts)
        ]
    )
