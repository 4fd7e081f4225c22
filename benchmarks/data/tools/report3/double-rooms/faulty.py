"""Bookings that overlap."""

from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "double_rooms",
    "description": "Rooms that are booked twice at a time: pairs of bookings of the same room whose times overlap",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="Lines of the form: room begin end who, with times as HH:MM")


class Output(BaseModel):
    pairs: list[str]
    rooms: list[str]


class Booking(BaseModel):
    room: str
    begin: str
    end: str
    who: str


def bookings(path: str) -> list[Booking]:
    found = []
    for line in Path(path).read_text(encoding="utf-8").splitlines():
        parts = line.split(maxsplit=3)
        if len(parts) == 4:
            room, begin, end, who = parts
            found.append(Booking(room=room, begin=begin.zfill(5), end=end.zfill(5), who=who))
    return found


def run(input: Input) -> Output:
    every = bookings(input.path)
    pairs = []
    rooms = set()
    for number, one in enumerate(every):
        for other in every[number + 1 :]:
            if one.room != other.room:
                continue
            if one.begin < other.end and one.begin < one.end:
                pairs.append(f"{one.room}: {one.who} / {other.who}")
                rooms.add(one.room)
    return Output(pairs=pairs, rooms=sorted(rooms))
