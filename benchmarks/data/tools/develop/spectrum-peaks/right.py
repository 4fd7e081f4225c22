"""Peaks of a spectrum."""

from itertools import groupby

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


def steps(values: list[float]) -> list[tuple[int, float]]:
    """First place and value of each run of equal values."""
    found = []
    place = 0
    for value, run_of in groupby(values):
        found.append((place, value))
        place += len(list(run_of))
    return found


def run(input: Input) -> Output:
    runs = steps(input.values)
    peaks = []
    for (_, before), (place, value), (_, after) in zip(runs, runs[1:], runs[2:]):
        if before < value > after and value >= input.least:
            peaks.append(Peak(place=place, height=value))
    highest = max(peaks, key=lambda peak: peak.height, default=None)
    return Output(peaks=peaks, highest=None if highest is None else highest.place)
