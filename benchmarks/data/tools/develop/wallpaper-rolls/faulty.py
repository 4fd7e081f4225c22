"""Rolls of wallpaper for a room."""

import math

from pydantic import BaseModel, Field

TOOL = {
    "name": "wallpaper_rolls",
    "description": "Rolls for some walls: strips of 53 cm, each as long as the height plus 5 cm, rounded up to whole repeats of the pattern (0 for none); how many whole strips a roll of 1005 cm gives decides",
    "effects": ["pure"],
    "dependencies": [],
}


ROLL_CM = 1005
WIDTH_CM = 53
SPARE_CM = 5


class Input(BaseModel):
    walls_cm: list[int]
    height_cm: int = Field(gt=0)
    repeat_cm: int = Field(0, ge=0)


class Output(BaseModel):
    strips: int
    strip_cm: int
    rolls: int
    waste_cm: int


def strip_length(height: int, repeat: int) -> int:
    length = height + SPARE_CM
    if repeat:
        length = length // repeat * repeat
    return length


def run(input: Input) -> Output:
    strips = sum(math.ceil(wall / WIDTH_CM) for wall in input.walls_cm)
    length = strip_length(input.height_cm, input.repeat_cm)
    per_roll = ROLL_CM // length
    if not per_roll:
        raise ValueError(f"a strip of {length} cm is longer than a roll")
    rolls = math.ceil(strips / per_roll)
    return Output(strips=strips, strip_cm=length, rolls=rolls, waste_cm=rolls * ROLL_CM - strips * length)
