"""Relative links for a Markdown page."""

import re
from pathlib import Path, PurePosixPath

from pydantic import BaseModel, Field

TOOL = {
    "name": "relative_link",
    "description": "Turns links of a Markdown page that begin with / into ones relative to the place of the page",
    "effects": ["read"],
    "dependencies": [],
}

LINK = re.compile(r"\]\(/([^)#\s]*)(#[^)\s]*)?\)")


class Input(BaseModel):
    path: str = Field(description="The file with the text")
    place: str = Field(description="Where the page will stand, such as docs/api/index.md")


class Output(BaseModel):
    text: str
    changed: int
    targets: list[str]


def relative(place: str, target: str) -> str:
    """The way from a page to a file; both are counted from the top folder."""
    here = PurePosixPath(place).parent.parts
    there = PurePosixPath(target).parts
    shared = 0
    while shared < min(len(here), len(there) - 1) and here[shared] == there[shared]:
        shared += 1
    return "/".join([".."] * (len(here) - shared) + list(there[shared:]))


def run(input: Input) -> Output:
    targets: list[str] = []

    def replace(match: re.Match[str]) -> str:
        targets.append(match[1])
        return f"]({relative(input.place, match[1])}{match[2] or ''})"

    text, changed = LINK.subn(replace, Path(input.path).read_text(encoding="utf-8"))
    return Output(text=text, changed=changed, targets=sorted(set(targets)))
