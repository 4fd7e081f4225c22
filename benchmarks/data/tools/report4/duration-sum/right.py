"""Sum of durations."""

import re
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "duration_sum",
    "description": "Sum of noted durations such as 1d 2h 30m, where a day is eight hours of work",
    "effects": ["read"],
    "dependencies": [],
}

SECONDS = {"d": 8 * 3600, "h": 3600, "m": 60, "s": 1}
PART = re.compile(r"(\d+)\s*([a-z])")


class Input(BaseModel):
    path: str = Field(description="Lines of the form what: duration")
    only: str = Field("", description="Only lines of this work")


class Output(BaseModel):
    total: str = Field(description="h:mm:ss")
    longest: str = Field(description="the work of the longest line, the first of equal ones")


def seconds(text: str) -> int:
    """Seconds of a duration; a unit that nobody knows counts for nothing."""
    return sum(int(number) * SECONDS.get(unit, 0) for number, unit in PART.findall(text.lower()))


def shown(total: int) -> str:
    hours, rest = divmod(total, 3600)
    return f"{hours}:{rest // 60:02}:{rest % 60:02}"


def run(input: Input) -> Output:
    lines = []
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        what, colon, text = line.partition(":")
        if colon and (not input.only or what.strip() == input.only):
            lines.append((what.strip(), seconds(text)))
    longest = max(lines, key=lambda each: each[1], default=("", 0))
    return Output(total=shown(sum(each for _, each in lines)), longest=longest[0])
