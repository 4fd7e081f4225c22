"""An excerpt of a log."""

from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "log_excerpt",
    "description": "The first line of a log with a word in it, and some lines before and after it",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str
    word: str = "ERROR"
    before: int = Field(2, ge=0)
    after: int = Field(1, ge=0)


class Output(BaseModel):
    line: int = Field(description="number of the line that was found, from 1 on; 0: there is none")
    excerpt: list[str]


def found_at(lines: list[str], word: str) -> int | None:
    return next((position for position, line in enumerate(lines) if word in line), None)


def excerpt(lines: list[str], position: int, before: int, after: int) -> list[str]:
    start = position - before
    return lines[start : position + after + 1]


def run(input: Input) -> Output:
    lines = Path(input.path).read_text(encoding="utf-8").splitlines()
    position = found_at(lines, input.word)
    if position is None:
        return Output(line=0, excerpt=[])
    return Output(line=position + 1, excerpt=excerpt(lines, position, input.before, input.after))
