"""Reads track titles from the names of audio files."""

from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "track_titles",
    "description": "The number and the title of each track, read from file names such as '03 - Blue Hour.mp3' (a name without ' - ' is all title and has no number), the numbers that are missing up to the highest one, and the files that are not called .mp3",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="A listing with one file name on each line")


class Track(BaseModel):
    number: int | None
    title: str


class Output(BaseModel):
    tracks: list[Track]
    missing: list[int]
    others: list[str]


def track_of(name: str) -> Track:
    stem = name.rstrip(".mp3")
    number, dash, title = stem.partition(" - ")
    if not dash:
        return Track(number=None, title=stem)
    return Track(number=int(number), title=title)


def run(input: Input) -> Output:
    tracks, others = [], []
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        name = line.strip()
        if not name:
            continue
        if name.endswith(".mp3"):
            tracks.append(track_of(name))
        else:
            others.append(name)
    numbers = {track.number for track in tracks if track.number is not None}
    missing = [number for number in range(1, max(numbers, default=0)) if number not in numbers]
    return Output(tracks=tracks, missing=missing, others=others)
