"""Versions within a caret range."""

from pydantic import BaseModel, Field

TOOL = {
    "name": "caret_range",
    "description": "Versions that a caret range such as ^1.2.3 takes: at least that version, and with the same first number that is not 0 and the same numbers before it (^1.2.3 is below 2.0.0, ^0.2.3 below 0.3.0, ^0.0.3 below 0.0.4; ^0.0.0 is only 0.0.0); in the order of versions, and the newest",
    "effects": ["pure"],
    "dependencies": [],
}

Version = tuple[int, int, int]


class Input(BaseModel):
    range: str = Field(pattern=r"^\^\d+\.\d+\.\d+$")
    versions: list[str]


class Output(BaseModel):
    fitting: list[str]
    newest: str | None
    below: str


def parse(text: str) -> Version:
    major, minor, patch = map(int, text.strip().lstrip("^v").split("."))
    return major, minor, patch


def limit(least: Version) -> Version:
    """The lowest version that is too high."""
    return least[0] + 1, 0, 0


def run(input: Input) -> Output:
    least = parse(input.range)
    below = limit(least)
    fitting = sorted((text for text in input.versions if least <= parse(text) < below), key=parse)
    return Output(
        fitting=fitting,
        newest=fitting[-1] if fitting else None,
        below=".".join(map(str, below)),
    )
