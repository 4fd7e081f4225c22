"""How long records are kept."""

import re
from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "retention_periods",
    "description": "How long each kind of record is kept, in minutes, from a file with periods such as 1y 6mo, 14 days or 30 min (min, h, d, w, mo and y, also written out; a month has 30 days and a year 365), which kinds are kept longer than a year, and which for the shortest time",
    "effects": ["read"],
    "dependencies": [],
}


MINUTES = {"mi": 1, "h": 60, "d": 1440, "w": 10080, "mo": 43200, "y": 525600}


class Input(BaseModel):
    path: str


class Output(BaseModel):
    minutes: dict[str, int]
    long: list[str]
    shortest: str | None


def period(text: str) -> int:
    """The minutes of a period of one or several parts."""
    total = 0
    for number, unit in re.findall(r"(\d+)\s*([a-z]+)", text.lower()):
        total += int(number) * MINUTES[unit[:2] if unit[0] == "m" else unit[0]]
    return total


def run(input: Input) -> Output:
    """Lines: kind = period; what follows a # is a remark."""
    minutes: dict[str, int] = {}
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        kind, sign, text = line.partition("#")[0].partition("=")
        if sign:
            minutes[kind.strip()] = period(text)
    return Output(
        minutes=minutes,
        long=[kind for kind, length in minutes.items() if length > MINUTES["y"]],
        shortest=min(minutes, key=lambda kind: minutes[kind], default=None),
    )
