"""Cuts headlines to the width of a column."""

from pydantic import BaseModel, Field

TOOL = {
    "name": "headline_cut",
    "description": "Headlines for a narrow column, each with its spaces made single and, where it is longer than the column, cut so that it fits with its ellipsis; and how many were cut",
    "effects": ["pure"],
    "dependencies": [],
}

ELLIPSIS = "\u2026"


class Input(BaseModel):
    headlines: list[str]
    width: int = Field(20, ge=2)


class Output(BaseModel):
    lines: list[str]
    cut: int
    widest: int


def fitted(text: str, width: int) -> str:
    """The text, or its beginning and an ellipsis; there is no space before that."""
    if len(text) <= width:
        return text
    return text[:width].rstrip() + ELLIPSIS


def run(input: Input) -> Output:
    lines = []
    cut = 0
    for headline in input.headlines:
        text = " ".join(headline.split())
        line = fitted(text, input.width)
        if line != text:
            cut += 1
        lines.append(line)
    return Output(lines=lines, cut=cut, widest=max(map(len, lines), default=0))
