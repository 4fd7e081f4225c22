"""Stableford points."""

from pydantic import BaseModel, Field

TOOL = {
    "name": "golf_points",
    "description": "Stableford points of a round: two for the net par, one more for each stroke less; 0 strokes is a hole not finished",
    "effects": ["pure"],
    "dependencies": [],
}


class Input(BaseModel):
    handicap: int
    pars: list[int]
    index: list[int] = Field(description="each hole's rank by difficulty, 1 to 18")
    strokes: list[int]


class Output(BaseModel):
    points: list[int]
    total: int
    blobs: int


def allowance(handicap: int, rank: int) -> int:
    """Strokes given on a hole: handicaps above 18 come round again."""
    return handicap // 18 + (rank <= handicap % 18)


def run(input: Input) -> Output:
    points = []
    for par, rank, strokes in zip(input.pars, input.index, input.strokes, strict=True):
        if strokes == 0:
            points.append(0)
            continue
        net = strokes - allowance(input.handicap, rank)
        points.append(max(0, 2 + par - net))
    return Output(points=points, total=sum(points), blobs=points.count(0))
