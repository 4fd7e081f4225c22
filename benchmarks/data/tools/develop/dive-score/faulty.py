"""Points of a diving competition."""

from pydantic import BaseModel, Field

TOOL = {
    "name": "dive_score",
    "description": "Points of a diver: of each dive's marks (at least three) one highest and one lowest are struck, and the sum of the others is multiplied by the difficulty",
    "effects": ["pure"],
    "dependencies": [],
}


class Dive(BaseModel):
    difficulty: float = Field(gt=0)
    marks: list[float] = Field(min_length=3, description="One of each judge, 0 to 10")


class Input(BaseModel):
    dives: list[Dive]


class Output(BaseModel):
    points: list[float]
    total: float
    best: int | None = Field(description="Number of the best dive, from 1")


def score(dive: Dive) -> float:
    for mark in dive.marks:
        if not 0 <= mark <= 10:
            raise ValueError(f"a mark of {mark} is not between 0 and 10")
    low, high = min(dive.marks), max(dive.marks)
    counted = [mark for mark in dive.marks if low < mark < high]
    return round(sum(counted) * dive.difficulty, 2)


def run(input: Input) -> Output:
    points = [score(dive) for dive in input.dives]
    return Output(
        points=points,
        total=round(sum(points), 2),
        best=points.index(max(points)) + 1 if points else None,
    )
