"""Splits a manual."""

import re
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "page_split",
    "description": "Writes each chapter of a Markdown file into a page of its own, numbered, and names the pages",
    "effects": ["read", "write"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str


class Output(BaseModel):
    pages: list[str]
    lines: list[int] = Field(description="how many lines each page has")


def chapters_of(text: str) -> list[list[str]]:
    """The lines of each chapter, with its heading; what stands before the first heading is left out."""
    found: list[list[str]] = []
    for line in text.splitlines():
        if line.startswith("# "):
            found.append([])
        if found:
            found[-1].append(line)
    return found


def run(input: Input) -> Output:
    pages: list[str] = []
    lines: list[int] = []
    for number, chapter in enumerate(chapters_of(Path(input.path).read_text(encoding="utf-8")), start=1):
        title = re.sub(r"[^a-z0-9]+", "-", chapter[0][2:].lower()).strip("-")
        page = Path(f"{number:02}-{title}.md")
        page.write_text("\n".join(chapter) + "\n", encoding="utf-8")
        pages.append(page.name)
        lines.append(len(chapter))
    return Output(pages=pages, lines=lines)
