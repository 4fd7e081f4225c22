"""Finds counted by the cells of a grid."""

import math
from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "grid_cells",
    "description": "Counts finds by square cells of a grid, which go on to the west and south of the origin with numbers below zero: of size 100, x from 0 to 99 is cell 0 and from -100 to -1 cell -1",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str
    size: int = 100


class Output(BaseModel):
    cells: dict[str, int]
    kinds: dict[str, list[str]]
    fullest: str | None


def run(input: Input) -> Output:
    """Lines: kind, x, y, in whole metres. Cells as they are first met; of equally full ones the first."""
    cells: dict[str, int] = {}
    kinds: dict[str, list[str]] = {}
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if not line.strip():
            continue
        kind, *place = line.split()
        across, up = (math.floor(int(text) / input.size) for text in place)
        cell = f"{across}/{up}"
        cells[cell] = cells.get(cell, 0) + 1
        known = kinds.setdefault(kind, [])
        if cell not in known:
            known.append(cell)
    fullest = max(cells, key=lambda cell: cells[cell], default=None)
    return Output(cells=cells, kinds=kinds, fullest=fullest)
