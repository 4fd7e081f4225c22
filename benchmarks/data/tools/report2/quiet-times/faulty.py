"""Notices that are held back in quiet times."""

from enum import Enum
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "quiet_times",
    "description": "Which notices are shown at once and which are held back, since they come in quiet times; these begin with one minute and end before another, and may go over midnight; an alarm is always shown",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="Lines of the form: hh:mm kind text")
    start: str = "22:00"
    end: str = "07:00"


class Output(BaseModel):
    shown: list[str]
    held: list[str]
    kinds: dict[str, int]


class Way(Enum):
    SHOW = "show"
    HOLD = "hold"


def minute(clock: str) -> int:
    hours, minutes = clock.split(":")
    return int(hours) * 60 + int(minutes)


def is_quiet(now: int, start: int, end: int) -> bool:
    return start <= now < end


def way(kind: str, clock: str, input: Input) -> Way:
    if kind == "alarm":
        return Way.SHOW
    return Way.HOLD if is_quiet(minute(clock), minute(input.start), minute(input.end)) else Way.SHOW


def run(input: Input) -> Output:
    sorted_out: dict[Way, list[str]] = {Way.SHOW: [], Way.HOLD: []}
    kinds: dict[str, int] = {}
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if not line.strip():
            continue
        clock, kind, text = line.split(maxsplit=2)
        chosen = way(kind, clock, input)
        sorted_out[chosen].append(f"{clock} {text}")
        if chosen is Way.HOLD:
            kinds[kind] = kinds.get(kind, 0) + 1
    return Output(shown=sorted_out[Way.SHOW], held=sorted_out[Way.HOLD], kinds=kinds)
