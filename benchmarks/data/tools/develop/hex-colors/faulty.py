"""Colours of a style sheet."""

from pydantic import BaseModel

TOOL = {
    "name": "hex_colors",
    "description": "Red, green and blue (0 to 255) of colours written as #rrggbb or, with each digit meaning two of itself, as #rgb; the darkest of them (smallest sum, the first of equals), and those that are grey",
    "effects": ["pure"],
    "dependencies": [],
}


class Input(BaseModel):
    colors: list[str]


class Output(BaseModel):
    values: list[tuple[int, int, int]]
    darkest: str | None
    grey: list[str]


def channels(color: str) -> tuple[int, int, int]:
    digits = color.strip().removeprefix("#")
    if len(digits) != 6:
        raise ValueError(f"{color!r} is not a colour")
    red, green, blue = bytes.fromhex(digits)
    return red, green, blue


def run(input: Input) -> Output:
    values = [channels(color) for color in input.colors]
    sums = [sum(value) for value in values]
    return Output(
        values=values,
        darkest=input.colors[sums.index(min(sums))] if sums else None,
        grey=[color for color, value in zip(input.colors, values) if len(set(value)) == 1],
    )
