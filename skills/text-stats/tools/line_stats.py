"""The measure of a text file."""

from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "line_stats",
    "description": "Count lines, empty lines, words and characters of a text file, and find its longest line",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="The text file, in the workspace")


class Output(BaseModel):
    lines: int
    empty: int = Field(description="Lines with nothing but white space")
    words: int = Field(description="Runs of characters between white space")
    characters: int = Field(description="Without line ends")
    longest: int = Field(description="Characters of the longest line")
    longest_line: int = Field(description="Its number, from 1; 0 in an empty file")


def run(input: Input) -> Output:
    """A line ends at \\n, \\r\\n or \\r; the last one may lack its end. Other separators are text."""
    text = Path(input.path).read_text(encoding="utf-8-sig", errors="replace")  # line ends become \n
    lines = text.removesuffix("\n").split("\n") if text else []
    lengths = [len(line) for line in lines]
    longest = max(lengths, default=0)
    return Output(
        lines=len(lines),
        empty=sum(not line.strip() for line in lines),
        words=sum(len(line.split()) for line in lines),
        characters=sum(lengths),
        longest=longest,
        longest_line=lengths.index(longest) + 1 if lines else 0,
    )
