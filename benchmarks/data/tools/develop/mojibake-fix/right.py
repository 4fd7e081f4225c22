"""Letters that were read in the wrong encoding."""

from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "mojibake_fix",
    "description": "Repairs the lines of a text that was written as UTF-8 and read as Windows-1252 (also twice), and leaves the other lines as they are",
    "effects": ["read"],
    "dependencies": [],
}

ROUNDS = 3


class Input(BaseModel):
    path: str


class Output(BaseModel):
    lines: list[str]
    repaired: list[int]


def once(line: str) -> str:
    """The line as it would be in UTF-8; itself where it cannot be that."""
    try:
        return line.encode("cp1252").decode("utf-8")
    except UnicodeError:
        return line


def run(input: Input) -> Output:
    """The repaired lines are counted from 1."""
    lines = []
    repaired = []
    text = Path(input.path).read_bytes().decode("utf-8")
    for number, line in enumerate(text.split("\n"), 1):
        better = line
        for _ in range(ROUNDS):
            better = once(better)
        if better != line:
            repaired.append(number)
        lines.append(better)
    if lines[-1] == "":
        lines.pop()
    return Output(lines=lines, repaired=repaired)
