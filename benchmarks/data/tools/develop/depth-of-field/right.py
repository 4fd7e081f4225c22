"""Depth of field."""

from pydantic import BaseModel, Field

TOOL = {
    "name": "depth_of_field",
    "description": "What a lens shows sharp: the hyperfocal distance f²/(N·c)+f and, for a focus distance s, near H·s/(H+s-f) and far H·s/(H-s+f), with H the hyperfocal distance less f; all in metres with two decimals (focal length and circle in mm); far is null, without end, where its divisor is not positive",
    "effects": ["pure"],
    "dependencies": [],
}


class Input(BaseModel):
    focal: float = Field(gt=0, description="mm")
    aperture: float = Field(gt=0, description="The f-number")
    distance: float = Field(gt=0, description="Metres")
    circle: float = Field(0.03, gt=0, description="Circle of confusion, mm")


class Output(BaseModel):
    hyperfocal: float
    near: float
    far: float | None
    depth: float | None


def metres(millimetres: float) -> float:
    return round(millimetres / 1000, 2)


def run(input: Input) -> Output:
    focus = input.distance * 1000
    if focus <= input.focal:
        raise ValueError("the distance has to be greater than the focal length")
    reach = input.focal**2 / (input.aperture * input.circle)
    near = reach * focus / (reach + focus - input.focal)
    divisor = reach - focus + input.focal
    far = reach * focus / divisor if divisor > 0 else None
    return Output(
        hyperfocal=metres(reach + input.focal),
        near=metres(near),
        far=None if far is None else metres(far),
        depth=None if far is None else metres(far - near),
    )
