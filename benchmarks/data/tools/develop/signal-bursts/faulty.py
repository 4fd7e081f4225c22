"""Bursts of a recorded signal."""

from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "signal_bursts",
    "description": "The bursts of a recorded signal, which are runs of values that reach a limit: where each starts (the first value is number 0), how long it is and its highest value; runs that are shorter than the least length are only counted",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str
    limit: float
    least: int = 1


class Burst(BaseModel):
    start: int
    length: int
    peak: float


class Output(BaseModel):
    bursts: list[Burst]
    short: int
    share: float


def run(input: Input) -> Output:
    """The file has the values with spaces or line ends between them; ``share``: that of the values within bursts."""
    values = [float(word) for word in Path(input.path).read_text(encoding="utf-8").split()]
    bursts = []
    short = 0
    start = 0
    while start < len(values):
        if values[start] < input.limit:
            start += 1
            continue
        end = start + 1
        while values[end] >= input.limit:
            end += 1
        if end - start >= input.least:
            bursts.append(Burst(start=start, length=end - start, peak=max(values[start:end])))
        else:
            short += 1
        start = end
    inside = sum(burst.length for burst in bursts)
    return Output(bursts=bursts, short=short, share=round(inside / len(values), 3) if values else 0.0)
