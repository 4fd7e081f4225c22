"""A CSV file as an aligned Markdown table."""

import csv
import io
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "markdown_table",
    "description": "Lines of a Markdown table from a CSV file; columns of numbers are aligned right, bars in cells are escaped",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="CSV, the first row holds the names of the columns")
    most: int = Field(default=0, ge=0, description="At most so many rows; 0 for all")


class Output(BaseModel):
    lines: list[str]
    left_out: int


def is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def numeric(rows: list[list[str]], column: int) -> bool:
    """Whether all filled cells of a column are numbers, and there is one."""
    filled = [row[column] for row in rows if row[column]]
    return bool(filled) and all(is_number(text) for text in filled)


def line(cells: list[str], widths: list[int], right: list[bool]) -> str:
    parts = [
        cell.rjust(width) if to_right else cell.ljust(width)
        for cell, width, to_right in zip(cells, widths, right, strict=True)
    ]
    return "| " + " | ".join(parts) + " |"


def run(input: Input) -> Output:
    text = Path(input.path).read_text(encoding="utf-8")
    table = [[cell.strip() for cell in row] for row in csv.reader(io.StringIO(text)) if row]
    if not table:
        return Output(lines=[], left_out=0)
    head, *rows = table
    rows = [(row + [""] * len(head))[: len(head)] for row in rows]
    left_out = 0
    if input.most and len(rows) > input.most:
        left_out = len(rows) - input.most
        rows = rows[: input.most]
    right = [numeric(rows, column) for column in range(len(head))]
    widths = [max(3, *(len(row[column]) for row in [head, *rows])) for column in range(len(head))]
    head = [cell.replace("|", r"\|") for cell in head]
    rows = [[cell.replace("|", r"\|") for cell in row] for row in rows]
    rule = ["-" * (width - 1) + ":" if to_right else "-" * width for width, to_right in zip(widths, right, strict=True)]
    lines = [line(head, widths, right), "| " + " | ".join(rule) + " |"]
    lines.extend(line(row, widths, right) for row in rows)
    return Output(lines=lines, left_out=left_out)
