"""Looks through the script of a scene."""

import re
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "stage_script",
    "description": "How many words each part of a scene speaks, the stage directions in parentheses with the part that they stand with, and the parts that say nothing; directions are not spoken",
    "effects": ["read"],
    "dependencies": [],
}

DIRECTION = re.compile(r"\((.*?)\)")


class Input(BaseModel):
    path: str = Field(description="Lines of the form: PART: words (direction) words")


class Output(BaseModel):
    words: dict[str, int]
    directions: list[str]
    silent: list[str]


def speeches(path: str) -> list[tuple[str, str]]:
    found = []
    for line in Path(path).read_text(encoding="utf-8").splitlines():
        part, colon, text = line.partition(":")
        if colon:
            found.append((part.strip(), text.strip()))
    return found


def spoken(text: str) -> list[str]:
    return DIRECTION.sub(" ", text).split()


def run(input: Input) -> Output:
    """Lines without a part, such as the name of the scene, are left out."""
    words: dict[str, int] = {}
    directions = []
    for part, text in speeches(input.path):
        words[part] = words.get(part, 0) + len(spoken(text))
        for direction in DIRECTION.findall(text):
            directions.append(f"{part}: {direction.strip()}")
    silent = sorted(part for part, number in words.items() if number == 0)
    return Output(words=words, directions=directions, silent=silent)
