"""Moves subtitles (SRT) earlier or later."""

import re
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "subtitle_shift",
    "description": "Shift the times of subtitles",
    "effects": ["read", "write"],
    "dependencies": [],
}

TIMES = re.compile(r"^(\d\d):(\d\d):(\d\d),(\d{3}) --> (\d\d):(\d\d):(\d\d),(\d{3})$")


class Input(BaseModel):
    path: str
    shift_ms: int = Field(description="Milliseconds; negative: earlier, but never before zero")
    out: str


class Output(BaseModel):
    titles: int
    first: str


def to_ms(hours: str, minutes: str, seconds: str, ms: str) -> int:
    return ((int(hours) * 60 + int(minutes)) * 60 + int(seconds)) * 1000 + int(ms)


def to_text(ms: int) -> str:
    seconds, ms = divmod(ms, 1000)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours:02}:{minutes:02}:{seconds:02},{ms:03}"


def moved(parts: tuple[str, ...], shift: int) -> str:
    return to_text(to_ms(*parts) + shift)


def run(input: Input) -> Output:
    lines, starts = [], []
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if match := TIMES.match(line):
            groups = match.groups()
            starts.append(moved(groups[:4], input.shift_ms))
            line = f"{starts[-1]} --> {moved(groups[4:], input.shift_ms)}"
        lines.append(line)
    Path(input.out).write_text("\n".join(lines) + "\n", encoding="utf-8")
    return Output(titles=len(starts), first=starts[0] if starts else "")
