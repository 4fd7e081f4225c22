"""The sum of one column of a CSV file."""

from math import fsum

from _table import number, rows
from pydantic import BaseModel, Field

TOOL = {
    "name": "column_sum",
    "description": "Add up one column of a CSV file; empty cells are counted, not added",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="The CSV file, in the workspace")
    column: str = Field(description="The column's name in the header row")
    delimiter: str = Field(",", min_length=1, max_length=1)


class Output(BaseModel):
    total: float
    rows: int
    empty: int = Field(description="Rows whose cell is empty")


def run(input: Input) -> Output:
    """Sum with one rounding at the end, so that the order of the rows does not matter."""
    cells = [(line, row[input.column]) for line, row in rows(input.path, input.delimiter, input.column)]
    values = [number(text, line, input.column) for line, text in cells if text]
    return Output(total=fsum(values), rows=len(cells), empty=len(cells) - len(values))
