"""The hours of guards."""

from datetime import datetime
from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "guard_shifts",
    "description": "How many minutes each guard worked, and how many of them between 22:00 and 6:00, from shifts with the times of their start and end; an end that is not after the start is on the next day, and midnight may be written as 00:00 or as 24:00",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str


class Output(BaseModel):
    minutes: dict[str, int]
    at_night: dict[str, int]
    longest: str


def minute_of_day(text: str) -> int:
    """A time such as 22:30, in minutes since midnight."""
    moment = datetime.strptime(text, "%H:%M")
    return moment.hour * 60 + moment.minute


def overlap(start: int, end: int, first: int, last: int) -> int:
    """How much of one span lies in the other."""
    return max(0, min(end, last) - max(start, first))


def run(input: Input) -> Output:
    """Lines: day, start-end, guard. ``longest`` is the first of the longest lines."""
    worked: dict[str, int] = {}
    at_night: dict[str, int] = {}
    longest, most = "", 0
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if not line.strip():
            continue
        _day, times, guard = line.split(maxsplit=2)
        start, end = (minute_of_day(text) for text in times.split("-"))
        if end <= start:
            end += 1440
        nights = ((0, 360), (1320, 1800), (2760, 3240))
        worked[guard] = worked.get(guard, 0) + end - start
        at_night[guard] = at_night.get(guard, 0) + sum(overlap(start, end, *night) for night in nights)
        if end - start > most:
            longest, most = line.strip(), end - start
    return Output(minutes=worked, at_night=at_night, longest=longest)
