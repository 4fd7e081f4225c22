"""Gaps between trams."""

from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "tram_headway",
    "description": "The gaps between trams at each stop (a stop's name with a colon, below it times HH:MM), their mean in minutes and the longest gap with its stop",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str


class Output(BaseModel):
    gaps: dict[str, list[int]]
    mean: float | None
    longest: list[str | int]


def minutes(text: str) -> int:
    hours, rest = text.split(":")
    return int(hours) * 60 + int(rest)


def run(input: Input) -> Output:
    """The longest gap is a stop and minutes, the first one of equal ones; without gaps it is empty."""
    gaps: dict[str, list[int]] = {}
    stop = ""
    previous = None
    longest: list[str | int] = []
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        line = line.strip()
        if not line:
            continue
        if line.endswith(":"):
            stop, previous = line[:-1], None
            gaps.setdefault(stop, [])
            continue
        time = minutes(line)
        if previous is not None:
            gap = time - previous
            gaps[stop].append(gap)
            if not longest or gap > longest[1]:
                longest = [stop, gap]
        previous = time
    every = [gap for values in gaps.values() for gap in values]
    mean = round(sum(every) / len(every), 2) if every else None
    return Output(gaps=gaps, mean=mean, longest=longest)
