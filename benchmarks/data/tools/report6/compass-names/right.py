"""Names of bearings."""

import math
from collections import Counter

from pydantic import BaseModel

TOOL = {
    "name": "compass_names",
    "description": "Names of bearings in degrees among 16 (N, NNE, ...; halfway between two counts for the next one clockwise), how often each occurs, and the turn from the first to the last in degrees to the right (0 to below 360)",
    "effects": ["pure"],
    "dependencies": [],
}


NAMES = "N NNE NE ENE E ESE SE SSE S SSW SW WSW W WNW NW NNW".split()
STEP = 360 / len(NAMES)


class Input(BaseModel):
    bearings: list[float]


class Output(BaseModel):
    names: list[str]
    counts: dict[str, int]
    turn: float


def name(bearing: float) -> str:
    number = math.floor(bearing % 360 / STEP + 0.5)
    return NAMES[number % len(NAMES)]


def run(input: Input) -> Output:
    names = [name(bearing) for bearing in input.bearings]
    counts = Counter(names)
    turn = (input.bearings[-1] - input.bearings[0]) % 360 if names else 0.0
    return Output(
        names=names,
        counts={point: counts[point] for point in NAMES if point in counts},
        turn=turn,
    )
