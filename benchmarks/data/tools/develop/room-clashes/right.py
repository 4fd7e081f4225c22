"""Finds double bookings of a meeting room."""

from itertools import combinations
from pathlib import Path
from typing import NamedTuple

from pydantic import BaseModel

TOOL = {
    "name": "room_clashes",
    "description": "Bookings of a room that overlap",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str


class Output(BaseModel):
    clashes: list[list[str]]
    busy_minutes: int


class Booking(NamedTuple):
    start: int
    end: int
    name: str


def minutes(text: str) -> int:
    hour, minute = text.split(":")
    return int(hour) * 60 + int(minute)


def parse(line: str) -> Booking:
    span, name = line.split(" ", 1)
    start, end = span.split("-")
    return Booking(minutes(start), minutes(end), name.strip())


def overlap(one: Booking, other: Booking) -> bool:
    """Whether both need the room at the same minute; the end is not part of a booking."""
    return one.start < other.end and other.start < one.end


def run(input: Input) -> Output:
    lines = Path(input.path).read_text(encoding="utf-8").splitlines()
    bookings = sorted(parse(line) for line in lines if line.strip())
    clashes = [[a.name, b.name] for a, b in combinations(bookings, 2) if overlap(a, b)]
    return Output(clashes=clashes, busy_minutes=sum(b.end - b.start for b in bookings))
