"""Writes short forms out."""

import re
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "short_forms",
    "description": "Notes with their short forms written out, where these stand by themselves and not within a longer word (small and large letters differ), how often each one was found, and the lines in which nothing was changed",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str
    forms: dict[str, str] = Field(description="Short forms and what they mean, such as qty and quantity")


class Output(BaseModel):
    lines: list[str]
    found: dict[str, int]
    unchanged: int


def write_out(line: str, short: str, meaning: str) -> tuple[str, int]:
    """The line, and how often the short form was found in it."""
    pattern = r"(?<!\w)" + re.escape(short) + r"(?!\w)"
    return re.subn(pattern, lambda match: meaning, line)


def run(input: Input) -> Output:
    found = dict.fromkeys(input.forms, 0)
    lines = []
    unchanged = 0
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        text = line
        for short, meaning in input.forms.items():
            text, times = write_out(text, short, meaning)
            found[short] += times
        unchanged += text == line
        lines.append(text)
    return Output(lines=lines, found=found, unchanged=unchanged)
