"""Wraps a text greedily."""

from pydantic import BaseModel, Field

TOOL = {
    "name": "text_wrap",
    "description": "Break a text into lines of a given width",
    "effects": ["pure"],
    "dependencies": [],
}


class Input(BaseModel):
    text: str
    width: int = Field(20, ge=1)


class Output(BaseModel):
    lines: list[str]
    longest: int


def wrap(words: list[str], width: int) -> list[str]:
    """As many words on each line as fit; a word that is longer than the width stands alone."""
    lines: list[str] = []
    current: list[str] = []
    used = 0
    for word in words:
        if current and used + len(word) > width:
            lines.append(" ".join(current))
            current, used = [], 0
        used += len(word) + (1 if current else 0)
        current.append(word)
    if current:
        lines.append(" ".join(current))
    return lines


def run(input: Input) -> Output:
    lines = wrap(input.text.split(), input.width)
    return Output(lines=lines, longest=max(map(len, lines), default=0))
