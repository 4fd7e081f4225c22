"""Table of contents for Markdown."""

import re
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "markdown_toc",
    "description": "Table of contents of a Markdown file",
    "effects": ["read"],
    "dependencies": [],
}

HEADING = re.compile(r"^(#{1,6}) +(.+?)\s*$")


class Input(BaseModel):
    path: str
    depth: int = Field(3, ge=1, le=6)


class Output(BaseModel):
    toc: str
    headings: int


def slug(title: str) -> str:
    return re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-")


def headings(text: str) -> list[tuple[int, str]]:
    """Level and title of each heading; fenced code holds none."""
    found = []
    for line in text.splitlines():
        if match := HEADING.match(line):
            found.append((len(match.group(1)), match.group(2)))
    return found


def run(input: Input) -> Output:
    """Titles that occur again get -1, -2, ... as on the usual sites."""
    seen: dict[str, int] = {}
    lines = []
    chosen = [item for item in headings(Path(input.path).read_text(encoding="utf-8")) if item[0] <= input.depth]
    for level, title in chosen:
        anchor = slug(title)
        count = seen.get(anchor, 0)
        seen[anchor] = count + 1
        lines.append("  " * (level - 1) + f"- [{title}](#{anchor}{f'-{count}' if count else ''})")
    return Output(toc="\n".join(lines), headings=len(chosen))
