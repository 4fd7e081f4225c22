"""Checks a sudoku: nine lines of nine signs, where anything but 1 to 9 is an empty cell."""

from collections import Counter
from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "sudoku_check",
    "description": "Rows, columns and boxes (each counted from 1, boxes row by row) of a sudoku that hold a digit twice, and whether it is solved: full, and none of them does",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str


class Output(BaseModel):
    rows: list[int]
    columns: list[int]
    boxes: list[int]
    solved: bool


def run(input: Input) -> Output:
    lines = [
        line.strip() for line in Path(input.path).read_text(encoding="utf-8").splitlines() if line.strip()
    ]
    if len(lines) != 9 or any(len(line) != 9 for line in lines):
        raise ValueError("a sudoku has nine lines of nine signs")
    seen: dict[str, Counter[tuple[int, str]]] = {"rows": Counter(), "columns": Counter(), "boxes": Counter()}
    filled = 0
    for row, line in enumerate(lines):
        for column, sign in enumerate(line):
            if sign not in "123456789":
                continue
            filled += 1
            seen["rows"][row, sign] += 1
            seen["columns"][column, sign] += 1
            seen["boxes"][row // 3 + column // 3, sign] += 1
    twice = {
        kind: sorted({place + 1 for (place, _), times in counts.items() if times > 1})
        for kind, counts in seen.items()
    }
    return Output(**twice, solved=filled == 81 and not any(twice.values()))
