"""Training zones by pulse."""

import bisect

from pydantic import BaseModel, Field

TOOL = {
    "name": "pulse_zones",
    "description": "Seconds in each of five training zones; a zone begins at its limit in percent of the maximal pulse",
    "effects": ["pure"],
    "dependencies": [],
}

LIMITS = (50, 60, 70, 80, 90)


class Input(BaseModel):
    beats: list[int] = Field(description="beats a minute, one reading after the other")
    maximum: int
    every_s: int = 10


class Output(BaseModel):
    seconds: list[int]
    below: int
    hardest: int | None
    mean: float | None


def run(input: Input) -> Output:
    starts = [input.maximum * limit / 100 for limit in LIMITS]
    seconds = [0] * len(LIMITS)
    below = 0
    for pulse in input.beats:
        zone = bisect.bisect_right(starts, pulse)
        if zone == 0:
            below += input.every_s
        else:
            seconds[zone - 1] += input.every_s
    reached = [number for number, time in enumerate(seconds, start=1) if time]
    return Output(
        seconds=seconds,
        below=below,
        hardest=max(reached) if reached else None,
        mean=round(sum(input.beats) / len(input.beats), 1) if input.beats else None,
    )
