"""Plans a straight stair."""

from math import ceil

from pydantic import BaseModel, Field

TOOL = {
    "name": "stair_plan",
    "description": "A straight stair (cm): the fewest equal risers that are not higher than the highest allowed, the riser's height, and the length on the floor: one tread fewer than risers, for the upper floor is the last step, or as many where the stair has a step of its own at the top (landing)",
    "effects": ["pure"],
    "dependencies": [],
}


class Input(BaseModel):
    height: float = Field(gt=0, description="From floor to floor")
    most: float = Field(18, gt=0, description="Height of a riser at most")
    tread: float = Field(27, gt=0, description="Depth of a tread")
    landing: bool = False


class Output(BaseModel):
    risers: int
    riser: float
    treads: int
    length: float
    comfortable: bool = Field(description="Two risers and a tread are 60 to 66 cm")


def run(input: Input) -> Output:
    risers = ceil(input.height / input.most)
    riser = input.height / risers
    treads = risers
    return Output(
        risers=risers,
        riser=round(riser, 2),
        treads=treads,
        length=round(treads * input.tread, 1),
        comfortable=60 <= 2 * riser + input.tread <= 66,
    )
