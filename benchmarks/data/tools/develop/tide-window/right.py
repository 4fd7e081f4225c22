"""When there is water enough."""

from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "tide_window",
    "description": "The times between which a harbour's water stands at a least depth (cm) or higher, from the first to the last such reading of each spell, and the longest of them in minutes",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str
    least: int = 150


class Output(BaseModel):
    windows: list[str]
    longest: int
    highest: int | None


def minutes(text: str) -> int:
    hours, rest = text.split(":")
    return int(hours) * 60 + int(rest)


def run(input: Input) -> Output:
    """Readings HH:MM depth of one day in their order; a spell of one reading has one time twice."""
    spells = []
    first = last = None
    highest = None
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if not line.strip():
            continue
        time, text = line.split()
        depth = int(text)
        highest = depth if highest is None else max(highest, depth)
        if depth >= input.least:
            first = first or time
            last = time
        elif first:
            spells.append((first, last))
            first = None
    if first:
        spells.append((first, last))
    longest = max((minutes(end) - minutes(start) for start, end in spells), default=0)
    return Output(windows=[f"{start}-{end}" for start, end in spells], longest=longest, highest=highest)
