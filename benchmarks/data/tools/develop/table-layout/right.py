"""Columns of plain text."""

import re
from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "table_layout",
    "description": "Sets a table with tabs between its cells in columns: each as wide as its widest cell, numbers to the right; rows may have different numbers of cells",
    "effects": ["read"],
    "dependencies": [],
}

NUMBER = re.compile(r"-?\d+(\.\d+)?")


class Input(BaseModel):
    path: str
    gap: int = 2


class Output(BaseModel):
    lines: list[str]
    widths: list[int]
    numbers: int


def run(input: Input) -> Output:
    """No spaces at the ends of lines; empty lines of the table are left out."""
    text = Path(input.path).read_text(encoding="utf-8")
    rows = [[cell.strip() for cell in line.split("\t")] for line in text.splitlines() if line.strip()]
    widths = [0] * max((len(row) for row in rows), default=0)
    for row in rows:
        for place, cell in enumerate(row):
            widths[place] = max(widths[place], len(cell))
    lines = []
    numbers = 0
    for row in rows:
        cells = []
        for cell, width in zip(row, widths):
            if NUMBER.fullmatch(cell):
                cells.append(cell.rjust(width))
                numbers += 1
            else:
                cells.append(cell.ljust(width))
        lines.append((" " * input.gap).join(cells).rstrip())
    return Output(lines=lines, widths=widths, numbers=numbers)
