"""Replaces tabs by spaces."""

from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "tab_expand",
    "description": "A text with each tab replaced by the spaces that lead to the next tab stop (columns that are a multiple of the width, counted from 0; a tab is at least one space), written to a new file, and its longest line",
    "effects": ["read", "write"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str
    width: int = Field(8, ge=1)
    out: str = "expanded.txt"


class Output(BaseModel):
    tabs: int
    longest: int


def expand(line: str, width: int) -> str:
    out = ""
    for sign in line:
        if sign == "\t":
            out += " " * width
        else:
            out += sign
    return out


def run(input: Input) -> Output:
    text = Path(input.path).read_text(encoding="utf-8")
    lines = [expand(line, input.width) for line in text.split("\n")]
    Path(input.out).write_text("\n".join(lines), encoding="utf-8")
    return Output(tabs=text.count("\t"), longest=max(map(len, lines)))
