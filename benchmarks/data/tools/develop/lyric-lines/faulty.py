"""Lines of a song by their time."""

import re
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "lyric_lines",
    "description": "The lines of an LRC file in the order of their times in seconds (two decimals): a line may have several times in front of it ([00:12.00][01:15.30]words) and is then sung at each; tags such as [ti:Song] are no lines, and [offset:500] lets all come so many milliseconds earlier; and how many different texts the lines have, empty ones aside",
    "effects": ["read"],
    "dependencies": [],
}

TIME = re.compile(r"\[(\d+):(\d\d(?:\.\d+)?)\]")
OFFSET = re.compile(r"\[offset:\s*([+-]?\d+)\]")


class Input(BaseModel):
    path: str


class Line(BaseModel):
    at: float
    words: str


class Output(BaseModel):
    lines: list[Line]
    different: int = Field(description="How many different texts there are")


def run(input: Input) -> Output:
    text = Path(input.path).read_text(encoding="utf-8")
    match = OFFSET.search(text)
    earlier = int(match[1]) / 1000 if match else 0.0
    lines: list[Line] = []
    for row in text.splitlines():
        front = TIME.match(row)
        if front is None:
            continue
        words = row[front.end() :].strip()
        minutes, seconds = front.groups()
        at = round(int(minutes) * 60 + float(seconds) - earlier, 2)
        lines.append(Line(at=at, words=words))
    lines.sort(key=lambda line: line.at)
    return Output(lines=lines, different=len({line.words for line in lines if line.words}))
