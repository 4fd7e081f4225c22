"""Rents of allotment gardens."""

from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "garden_rents",
    "description": "The rent of each holder of allotment plots in cents, at a price for each square metre; the square metres that are let and free, where a free plot has no holder",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="Lines of the form: plot;holder;area, such as: Plot 4;Ada;120 m²")
    cents: int = Field(30, ge=0, description="The rent of a square metre")


class Output(BaseModel):
    rents: dict[str, int]
    let: int
    free: int


def square_metres(text: str) -> int:
    """Whole square metres; there may be spaces between the digits, and the unit is m², sqm or sq m."""
    digits = "".join(sign for sign in text if sign.isdigit())
    return int(digits or 0)


def plots(path: str) -> list[tuple[str, int]]:
    found = []
    for line in Path(path).read_text(encoding="utf-8").splitlines():
        if line.strip():
            _, holder, area = line.split(";")
            found.append((holder.strip(), square_metres(area)))
    return found


def run(input: Input) -> Output:
    rents: dict[str, int] = {}
    let = free = 0
    for holder, area in plots(input.path):
        if not holder:
            free += area
            continue
        let += area
        rents[holder] = rents.get(holder, 0) + area * input.cents
    return Output(rents=rents, let=let, free=free)
