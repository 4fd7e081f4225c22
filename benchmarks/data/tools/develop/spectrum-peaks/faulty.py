"""Peaks of a spectrum."""

from pydantic import BaseModel

TOOL = {
    "name": "spectrum_peaks",
    "description": "Peaks of a row of values: higher than what stands before and after, with a flat top counted once at its first place; the ends are no peaks; only peaks of at least a given height",
    "effects": ["pure"],
    "dependencies": [],
}


class Input(BaseModel):
    values: list[float]
    least: float = 0


class Peak(BaseModel):
    place: int
    height: float


class Output(BaseModel):
    peaks: list[Peak]
    highest: int | None


def run(input: Input) -> Output:
    runs = list(enumerate(input.values))
    peaks = []
    for (_, before), (place, value), (_, after) in zip(runs, runs[1:], runs[2:]):
        if before < value > after and value >= input.least:
            peaks.append(Peak(place=place, height=value))
    highest = max(peaks, key=lambda peak: peak.height, default=None)
    return Output(peaks=peaks, highest=None if highest is None else highest.place)
