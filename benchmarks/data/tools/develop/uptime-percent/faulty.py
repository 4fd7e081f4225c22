"""Uptime of a service."""

from pydantic import BaseModel, Field

TOOL = {
    "name": "uptime_percent",
    "description": "How long a service was down within a period of so many minutes, from outages of its checks (first minute, minute after the last; they may overlap and reach beyond the period), the uptime in percent with three decimals, and the longest time down without a break",
    "effects": ["pure"],
    "dependencies": [],
}


class Input(BaseModel):
    minutes: int = Field(gt=0)
    outages: list[tuple[int, int]]


class Output(BaseModel):
    down: int
    uptime: float
    longest: int


def run(input: Input) -> Output:
    clipped = [(max(0, start), min(end, input.minutes)) for start, end in input.outages]
    spans = sorted((start, end) for start, end in clipped if end > start)
    lengths = [end - start for start, end in spans]
    down = sum(lengths)
    return Output(
        down=down,
        uptime=round(100 * (input.minutes - down) / input.minutes, 3),
        longest=max(lengths, default=0),
    )
