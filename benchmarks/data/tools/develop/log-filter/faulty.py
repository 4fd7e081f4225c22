"""Lines of a log by their level."""

import re
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "log_filter",
    "description": "The lines of a log that are at least as grave as a given level, and how many there are of each level",
    "effects": ["read"],
    "dependencies": [],
}

LEVELS = ["DEBUG", "INFO", "NOTICE", "WARNING", "ERROR", "CRITICAL"]
LINE = re.compile(r"^\S+ (\w+): (.*)$")


class Input(BaseModel):
    path: str = Field(description="Lines such as: 10:00:01 ERROR: disk full; other lines belong to the one before")
    level: str = "WARNING"


class Output(BaseModel):
    messages: list[str]
    counts: dict[str, int]


def run(input: Input) -> Output:
    least = input.level.upper()
    messages: list[str] = []
    counts: dict[str, int] = {}
    taken = False
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        found = LINE.match(line)
        if found is None or found[1] not in LEVELS:
            if taken and line.strip():
                messages[-1] += " " + line.strip()
            continue
        level, message = found[1], found[2]
        counts[level] = counts.get(level, 0) + 1
        taken = level >= least
        if taken:
            messages.append(f"{level}: {message}")
    return Output(messages=messages, counts=counts)
