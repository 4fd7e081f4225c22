"""Replaces words in a file."""

import re
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "word_swap",
    "description": "Replaces words of a text, in the order given and exactly as they are written (also a dot or a plus is itself), in the file itself, and counts how often each was found",
    "effects": ["read", "write"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str
    words: dict[str, str] = Field(description="What is replaced by what")


class Output(BaseModel):
    found: dict[str, int]
    changed: bool


def run(input: Input) -> Output:
    file = Path(input.path)
    before = file.read_text(encoding="utf-8")
    text = before
    found: dict[str, int] = {}
    for old, new in input.words.items():
        if not old:
            raise ValueError("an empty word cannot be replaced")
        pattern = re.compile(old)
        text, times = pattern.subn(lambda match, new=new: new, text)
        found[old] = times
    if text != before:
        file.write_text(text, encoding="utf-8")
    return Output(found=found, changed=text != before)
