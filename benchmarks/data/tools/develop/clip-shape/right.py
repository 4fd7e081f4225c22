"""Shapes of video clips."""

from collections import Counter
from math import gcd

from pydantic import BaseModel

TOOL = {
    "name": "clip_shape",
    "description": "Shape of each clip as it is shown (turned by its rotation of 0, 90, 180 or 270 degrees): aspect ratio in lowest terms, and upright, wide or square; and the most frequent ratio",
    "effects": ["pure"],
    "dependencies": [],
}


class Clip(BaseModel):
    name: str
    width: int
    height: int
    rotation: int = 0


class Input(BaseModel):
    clips: list[Clip]


class Output(BaseModel):
    ratios: dict[str, str]
    shapes: dict[str, list[str]]
    usual: str | None


def shown(clip: Clip) -> tuple[int, int]:
    if clip.rotation % 180 == 90:
        return clip.height, clip.width
    return clip.width, clip.height


def shape(width: int, height: int) -> str:
    if width == height:
        return "square"
    return "wide" if width > height else "upright"


def run(input: Input) -> Output:
    ratios = {}
    shapes: dict[str, list[str]] = {"upright": [], "wide": [], "square": []}
    for clip in input.clips:
        width, height = shown(clip)
        divisor = gcd(width, height)
        ratios[clip.name] = f"{width // divisor}:{height // divisor}"
        shapes[shape(width, height)].append(clip.name)
    usual = Counter(ratios.values()).most_common(1)
    return Output(ratios=ratios, shapes=shapes, usual=usual[0][0] if usual else None)
