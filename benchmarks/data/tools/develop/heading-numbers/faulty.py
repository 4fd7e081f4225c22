"""Numbers for the headings of a document."""

import re
from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "heading_numbers",
    "description": "Numbers the headings of a text in Markdown (1, 1.1, 1.2, 2, 2.1) down to the deepest level that gets a number",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str
    deepest: int = 3


class Output(BaseModel):
    headings: list[str]
    chapters: int
    plain: int


HEADING = re.compile(r"(#{1,6})\s+(.+?)\s*#*")


def run(input: Input) -> Output:
    """A level that is left out counts as 0 (1.0.1). Deeper headings stay without a number, and are counted as plain."""
    counters = [0] * 6
    headings = []
    plain = 0
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        match = HEADING.fullmatch(line.rstrip())
        if match is None:
            continue
        level = len(match[1])
        title = match[2]
        if level > input.deepest:
            headings.append(title)
            plain += 1
            continue
        counters[level - 1] += 1
        number = ".".join(str(counter) for counter in counters[:level])
        headings.append(f"{number} {title}")
    return Output(headings=headings, chapters=counters[0], plain=plain)
