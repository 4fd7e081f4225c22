"""How much paint walls take."""

import math
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "paint_need",
    "description": "Tins of paint for walls with doors and windows and a number of coats",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="Lines: room: width x height - opening, opening (each width x height)")
    coats: int = Field(2, ge=1)
    per_litre: float = Field(8, description="Square metres that a litre covers once")
    tin: float = Field(2.5, description="Litres of a tin")


class Output(BaseModel):
    tins: int
    litres: float
    rooms: dict[str, float] = Field(description="Square metres to paint in each room, all coats together")


def area(text: str) -> float:
    """Width x height in metres."""
    width, height = text.split("x")
    return float(width) * float(height)


def to_paint(line: str, coats: int) -> tuple[str, float]:
    name, _, rest = line.partition(":")
    wall, _, openings = rest.partition("-")
    gaps = sum(area(part) for part in openings.split(",") if part.strip())
    return name.strip(), area(wall) * coats - gaps


def run(input: Input) -> Output:
    rooms: dict[str, float] = {}
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if line.strip():
            name, square = to_paint(line, input.coats)
            rooms[name] = round(rooms.get(name, 0) + square, 2)
    litres = round(sum(rooms.values()) / input.per_litre, 2)
    return Output(tins=math.ceil(litres / input.tin), litres=litres, rooms=rooms)
