"""The next departures from a station."""

from bisect import bisect_left
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "next_trains",
    "description": "Next departure of each line",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="Lines: NAME: hh:mm hh:mm ... in rising order")
    at: str = Field(description="Time from which on, hh:mm; a train at that minute can be caught")


class Output(BaseModel):
    departures: dict[str, str]
    waits: dict[str, int]


def minutes(text: str) -> int:
    return int(text[:2]) * 60 + int(text[3:])


def run(input: Input) -> Output:
    """After the last train of the day a line waits for the first of the next."""
    departures, waits = {}, {}
    now = minutes(input.at)
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        name, _, rest = line.partition(": ")
        times = rest.split()
        index = bisect_left([minutes(time) for time in times], now)
        departures[name] = times[index % len(times)]
        waits[name] = (minutes(departures[name]) - now) % (24 * 60)
    return Output(departures=departures, waits=waits)
