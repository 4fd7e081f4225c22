"""A CSV file as a text table."""

from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "column_align",
    "description": "Lays a CSV file out as text in columns that are as wide as their widest cell, numbers at the right and other cells at the left, with a rule below the head",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str
    gap: int = 2


class Output(BaseModel):
    lines: list[str]
    width: int


def run(input: Input) -> Output:
    """The first line is the head; no blanks at the end of a line. The width is that of the rule."""
    text = Path(input.path).read_text(encoding="utf-8")
    rows = [[cell.strip() for cell in line.split(",")] for line in text.splitlines() if line.strip()]
    if not rows:
        return Output(lines=[], width=0)
    count = max(len(row) for row in rows)
    rows = [row + [""] * (count - len(row)) for row in rows]
    widths = [max((len(row[column]) for row in rows[1:]), default=0) for column in range(count)]
    between = " " * input.gap
    lines = []
    for row in rows:
        cells = [
            cell.rjust(width) if cell.isdigit() else cell.ljust(width)
            for cell, width in zip(row, widths, strict=True)
        ]
        lines.append(between.join(cells).rstrip())
    width = sum(widths) + input.gap * (count - 1)
    lines.insert(1, "-" * width)
    return Output(lines=lines, width=width)
