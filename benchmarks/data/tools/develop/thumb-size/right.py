"""Sizes of thumbnails."""

from fractions import Fraction

from pydantic import BaseModel

TOOL = {
    "name": "thumb_size",
    "description": "Size of each picture within a box, with its proportions kept and never larger than it is, and pixels saved",
    "effects": ["pure"],
    "dependencies": [],
}


class Input(BaseModel):
    sizes: list[str]
    box: str = "128x128"


class Output(BaseModel):
    thumbs: list[str]
    saved: int


def parse(text: str) -> tuple[int, int]:
    width, height = text.lower().split("x")
    return int(width), int(height)


def fit(width: int, height: int, wide: int, high: int) -> tuple[int, int]:
    """The largest size with the same proportions, at least a pixel each way."""
    factor = min(Fraction(wide, width), Fraction(high, height), Fraction(1))
    return max(1, round(width * factor)), max(1, round(height * factor))


def run(input: Input) -> Output:
    wide, high = parse(input.box)
    thumbs = []
    saved = 0
    for size in input.sizes:
        width, height = parse(size)
        new_width, new_height = fit(width, height, wide, high)
        saved += width * height - new_width * new_height
        thumbs.append(f"{new_width}x{new_height}")
    return Output(thumbs=thumbs, saved=saved)
