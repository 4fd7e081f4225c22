"""Stitches to cast on for the pieces of a knitted garment."""

from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "knit_gauge",
    "description": "Stitches to cast on for widths in centimetres, from a gauge swatch of 10 cm and the stitches of a pattern repeat",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="Lines: piece: width in cm")
    gauge: int = Field(description="Stitches in 10 cm")
    repeat: int = Field(1, ge=1, description="Stitches of one repeat; half a repeat or more gives another")
    edge: int = Field(2, description="Stitches beside the repeats")


class Output(BaseModel):
    cast_on: dict[str, int]


def to_repeat(stitches: int, repeat: int) -> int:
    """The whole repeats nearest to a number of stitches, at least one."""
    repeats, left = divmod(stitches, repeat)
    if left * 2 > repeat:
        repeats += 1
    return max(repeats, 1) * repeat


def run(input: Input) -> Output:
    cast_on: dict[str, int] = {}
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if ":" not in line:
            continue
        piece, width = line.split(":", 1)
        stitches = int(width) * input.gauge // 10
        cast_on[piece.strip()] = to_repeat(stitches, input.repeat) + input.edge
    return Output(cast_on=cast_on)
