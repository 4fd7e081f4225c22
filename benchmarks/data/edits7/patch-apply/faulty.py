"""Applies a patch to a text."""

import re
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "patch_apply",
    "description": "A text after a patch in the unified form, and how many lines it added and removed",
    "effects": ["read"],
    "dependencies": [],
}


HUNK = re.compile(r"@@ -(\d+)(?:,\d+)? \+\d+(?:,\d+)? @@")


class Input(BaseModel):
    path: str
    patch: str = Field(description="File with the patch of this one file")


class Output(BaseModel):
    text: list[str]
    added: int
    removed: int


def hunks_of(patch: str) -> list[tuple[int, list[str]]]:
    """Each hunk: the number of its first line in the old text, and its lines."""
    found: list[tuple[int, list[str]]] = []
    for line in patch.splitlines():
        match = HUNK.match(line)
        if match:
            found.append((int(match[1]), []))
        elif found:
            found[-1][1].append(line)
    return found


def run(input: Input) -> Output:
    lines = Path(input.path).read_text(encoding="utf-8").splitlines()
    added = removed = 0
    for start, body in hunks_of(Path(input.patch).read_text(encoding="utf-8")):
        at = start - 1
        for line in body:
            mark, text = line[:1], line[1:]
            if mark == "+":
                lines.insert(at, text)
                added += 1
                at += 1
                continue
            if lines[at] != text:
                raise ValueError(f"line {at + 1} is {lines[at]!r}, not {text!r}")
            if mark == "-":
                del lines[at]
                removed += 1
            else:
                at += 1
    return Output(text=lines, added=added, removed=removed)
