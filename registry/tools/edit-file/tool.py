"""Replaces one exact passage of a text file."""

import difflib
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "edit_file",
    "description": "Replace an exact passage of a text file; it has to occur once, unless all are meant",
    "effects": ["read", "write"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="The file, relative to the workspace")
    old: str = Field(min_length=1, description="The passage as it stands there, white space included")
    new: str = Field(description="What is to stand in its place; empty to remove it")
    all: bool = Field(False, description="Replace each occurrence")


class Output(BaseModel):
    replaced: int
    first_line: int = Field(description="Where the first replacement begins")


def run(input: Input) -> Output:
    """Raises ValueError when the passage does not occur, or not once; nothing is changed then."""
    path = Path(input.path).resolve()
    if not path.is_relative_to(Path.cwd().resolve()):
        raise ValueError(f"{input.path} lies outside the workspace: give a path relative to it")
    with path.open(encoding="utf-8", newline="") as file:
        text = file.read()
    old, new = input.old, input.new
    if 0 < text.count("\n") == text.count("\r\n") and "\r" not in old + new:
        # the file's lines end as on Windows, which read_file does not show
        old, new = old.replace("\n", "\r\n"), new.replace("\n", "\r\n")
    places = places_of(text, old)
    if not places:
        raise ValueError(f"{input.path} does not hold this passage{near(text, input.old)}")
    lines = [text.count("\n", 0, place) + 1 for place in places[:10]]
    if len(places) > 1 and not input.all:
        shown = ", ".join(map(str, lines))
        raise ValueError(
            f"the passage occurs {len(places)} times in {input.path} (lines {shown}): "
            "give more of what stands around it, or say that all are meant"
        )
    with path.open("w", encoding="utf-8", newline="") as file:
        file.write(text.replace(old, new))
    return Output(replaced=len(places), first_line=lines[0])


def places_of(text: str, passage: str) -> list[int]:
    """Where it begins, each time; occurrences do not overlap."""
    found, place = [], text.find(passage)
    while place >= 0:
        found.append(place)
        place = text.find(passage, place + len(passage))
    return found


def near(text: str, passage: str) -> str:
    """A hint at the line that is most like the passage's first."""
    first = next((line for line in passage.splitlines() if line.strip()), "")
    if places_of(text.replace("\r\n", "\n"), passage):
        return "; some of its lines end as on Windows: write those line ends as \\r\\n"
    lines = text.splitlines()
    likely = difflib.get_close_matches(first, lines[:20_000], 1)
    return f"; line {lines.index(likely[0]) + 1} is like it: {likely[0]!r}" if likely else ""
