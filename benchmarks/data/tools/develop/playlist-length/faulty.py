"""Length of an extended M3U playlist."""

import re
from collections import Counter
from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "playlist_length",
    "description": "How long an M3U playlist plays, its longest title, titles by artist, and titles of unknown length (-1)",
    "effects": ["read"],
    "dependencies": [],
}

INFO = re.compile(r"#EXTINF:\s*(-?\d+)\s*,\s*(.+?) - (.+)")


class Input(BaseModel):
    path: str


class Output(BaseModel):
    total: str
    longest: str | None
    artists: dict[str, int]
    unknown: int


def clock(seconds: int) -> str:
    hours, rest = divmod(seconds, 3600)
    minutes, seconds = divmod(rest, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}"


def run(input: Input) -> Output:
    lines = Path(input.path).read_text(encoding="utf-8").splitlines()
    entries = [match.groups() for line in lines if (match := INFO.match(line))]
    lengths = [int(length) for length, _, _ in entries]
    known = [length for length in lengths if length >= 0]
    longest = None
    if known:
        longest = entries[lengths.index(max(known))][2].strip()
    return Output(
        total=clock(sum(lengths)),
        longest=longest,
        artists=dict(Counter(artist for _, artist, _ in entries)),
        unknown=lengths.count(-1),
    )
