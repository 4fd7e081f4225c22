"""Contrast of text and background as the WCAG have it."""

from pydantic import BaseModel

TOOL = {
    "name": "contrast_check",
    "description": "Contrast ratio of pairs of colours and the level (AAA, AA or fail) that text in them reaches",
    "effects": ["pure"],
    "dependencies": [],
}


class Input(BaseModel):
    pairs: list[tuple[str, str]]
    large: bool = False


class Output(BaseModel):
    ratios: list[float]
    levels: list[str]


def channel(value: int) -> float:
    share = value / 255
    return share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4


def luminance(colour: str) -> float:
    digits = colour.lstrip("#")
    if len(digits) == 3:
        digits = "".join(digit * 2 for digit in digits)
    red, green, blue = (channel(int(digits[i : i + 2], 16)) for i in (0, 2, 4))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    light, dark = luminance(one), luminance(other)
    return (light + 0.05) / (dark + 0.05)


def run(input: Input) -> Output:
    enough, best = (3.0, 4.5) if input.large else (4.5, 7.0)
    ratios = [contrast(*pair) for pair in input.pairs]
    levels = ["AAA" if ratio >= best else "AA" if ratio >= enough else "fail" for ratio in ratios]
    return Output(ratios=[round(ratio, 2) for ratio in ratios], levels=levels)
