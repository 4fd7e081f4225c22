"""Counts a file as wc does."""

from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "word_count",
    "description": "Count line ends, words and bytes of a file, as wc does",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="The file, in the workspace")


class Output(BaseModel):
    lines: int = Field(description="Line ends: a last line without one is not counted")
    words: int
    bytes: int


def run(input: Input) -> Output:
    """Any bytes will do: words are what stands between ASCII white space."""
    content = Path(input.path).read_bytes()
    return Output(lines=content.count(b"\n"), words=len(content.split()), bytes=len(content))
