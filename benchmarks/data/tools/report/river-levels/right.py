"""Reads the levels of a river."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from pydantic import BaseModel, Field

TOOL = {
    "name": "river_levels",
    "description": "The highest level of a river on a day and its time (the first of several), the times at which it stood above the level of warning, and the greatest number of readings in a row that did",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="Lines of the form: hh:mm;level in cm, by time; a level may be missing")
    warn: int = Field(300, description="The level of warning in cm")


class Output(BaseModel):
    highest: int | None
    at: str | None
    above: list[str]
    in_a_row: int


class Reading(NamedTuple):
    time: str
    level: int


def readings(path: str) -> Iterator[Reading]:
    for line in Path(path).read_text(encoding="utf-8").splitlines():
        if not line.strip():
            continue
        time, level = line.split(";")
        if level.strip():
            yield Reading(time.strip(), int(level))


def run(input: Input) -> Output:
    """Readings without a level are left out."""
    levels = list(readings(input.path))
    top = max(levels, key=lambda reading: reading.level, default=None)
    above = []
    row = longest = 0
    for reading in levels:
        row = row + 1 if reading.level > input.warn else 0
        longest = max(longest, row)
        if row:
            above.append(reading.time)
    return Output(
        highest=top.level if top else None,
        at=top.time if top else None,
        above=above,
        in_a_row=longest,
    )
