"""Moves what is done from a list of things to do into an archive."""

from datetime import date
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "todo_archive",
    "description": "Move the done lines (x DATE TEXT) of todo.txt to the end of done.txt, and name those of a month",
    "effects": ["read", "write"],
    "dependencies": [],
}

TODO = Path("todo.txt")
DONE = Path("done.txt")


class Input(BaseModel):
    until: date | None = Field(default=None, description="Leave what was done later in the list")


class Output(BaseModel):
    moved: int
    open: int
    archive: list[str]


def is_done(line: str, until: date | None) -> bool:
    words = line.split(maxsplit=2)
    if len(words) < 2 or words[0] != "x":
        return False
    try:
        day = date.fromisoformat(words[1])
    except ValueError:
        return until is None
    return until is None or day <= until


def run(input: Input) -> Output:
    lines = [line.rstrip() for line in TODO.read_text(encoding="utf-8").splitlines() if line.strip()]
    done = [line for line in lines if is_done(line, input.until)]
    left = [line for line in lines if line not in done]
    old = DONE.read_text(encoding="utf-8") if DONE.exists() else ""
    text = old + "".join(f"{line}\n" for line in done)
    DONE.write_text(text, encoding="utf-8")
    TODO.write_text("".join(f"{line}\n" for line in left), encoding="utf-8")
    return Output(
        moved=len(done),
        open=sum(not line.startswith("x ") for line in left),
        archive=text.splitlines(),
    )
