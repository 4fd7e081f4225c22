"""Track lengths from a cue sheet."""

import re
from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "cue_lengths",
    "description": "Lengths in seconds (two decimals) of the tracks of a cue sheet, from one INDEX 01 to the next; times are minutes:seconds:frames with 75 frames a second; the last track's length is not known and null",
    "effects": ["read"],
    "dependencies": [],
}

TITLE = re.compile(r'\s*TITLE\s+"(.*)"')
INDEX = re.compile(r"\s*INDEX\s+01\s+(\d+):(\d+):(\d+)")


class Input(BaseModel):
    path: str


class Track(BaseModel):
    title: str
    start: float
    length: float | None = None


class Output(BaseModel):
    tracks: list[Track]
    longest: str | None


def run(input: Input) -> Output:
    tracks: list[Track] = []
    title = ""
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if match := TITLE.match(line):
            title = match[1]
        elif match := INDEX.match(line):
            minutes, seconds, frames = map(int, match.groups())
            start = minutes * 60 + seconds + frames / 100
            if tracks:
                tracks[-1].length = round(start - tracks[-1].start, 2)
            tracks.append(Track(title=title, start=start))
    for track in tracks:
        track.start = round(track.start, 2)
    known = [track for track in tracks if track.length is not None]
    longest = max(known, key=lambda track: track.length).title if known else None
    return Output(tracks=tracks, longest=longest)
