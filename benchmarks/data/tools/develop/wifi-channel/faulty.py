"""Where to put an access point."""

import csv
import io
from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "wifi_channel",
    "description": "Loudest station heard on each of the channels 1, 6 and 11 of a scan, and the channel with the least trouble",
    "effects": ["read"],
    "dependencies": [],
}

CHANNELS = (1, 6, 11)
SILENCE = -100


class Input(BaseModel):
    path: str
    hear_dbm: int = -85


class Output(BaseModel):
    loudest: dict[str, int]
    best: int
    heard: int


def read(path: str, at_least: int) -> list[tuple[int, int]]:
    text = Path(path).read_text(encoding="utf-8")
    found = []
    for _name, channel, dbm in csv.reader(io.StringIO(text)):
        if int(dbm) >= at_least:
            found.append((int(channel), int(dbm)))
    return found


def run(input: Input) -> Output:
    stations = read(input.path, input.hear_dbm)
    loudest = {}
    for channel in CHANNELS:
        near = [dbm for number, dbm in stations if abs(number - channel) <= 2]
        loudest[channel] = min(near, default=SILENCE)
    best = min(CHANNELS, key=lambda channel: (loudest[channel], channel))
    return Output(
        loudest={str(channel): dbm for channel, dbm in loudest.items()},
        best=best,
        heard=len(stations),
    )
