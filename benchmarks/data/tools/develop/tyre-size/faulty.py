"""Outer diameters of tyres."""

import re
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "tyre_size",
    "description": "Outer diameters of tyres from sizes such as 205/55 R16, and by how many percent they differ from the first",
    "effects": ["read"],
    "dependencies": [],
}

SIZE = re.compile(r"^(\d{3})(?:/(\d{2}))?\s*[RrDd-]\s*(\d{2})$")
INCH = 25.4


class Input(BaseModel):
    path: str = Field(description="Sizes, one a line; without a second number the flank is 82 percent of the width")
    most: float = Field(2.5, description="Percent that a tyre may differ by")


class Output(BaseModel):
    diameters: list[float] = Field(description="In millimetres")
    misfits: list[str]


def diameter(size: str) -> float:
    found = SIZE.match(size)
    if found is None:
        raise ValueError(f"{size!r} is no size of a tyre")
    width, percent, rim = int(found[1]), int(found[2]), int(found[3])
    return rim * INCH + 2 * width * percent / 100


def run(input: Input) -> Output:
    text = Path(input.path).read_text(encoding="utf-8")
    sizes = [line.strip() for line in text.splitlines() if line.strip()]
    diameters = [diameter(size) for size in sizes]
    misfits = []
    for size, value in zip(sizes, diameters):
        off = abs(value - diameters[0]) / diameters[0] * 100
        if off > input.most:
            misfits.append(size)
    return Output(diameters=[round(value, 1) for value in diameters], misfits=misfits)
