"""Paragraphs of a wrapped text as one line each."""

from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "line_unwrap",
    "description": "Join the lines of wrapped paragraphs to one, and the words that were divided at a line's end",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="Paragraphs are divided by empty lines")


class Output(BaseModel):
    paragraphs: list[str]
    joined: int = Field(description="Words that were put together")


def run(input: Input) -> Output:
    paragraphs: list[str] = []
    text = ""
    joined = 0
    for raw in [*Path(input.path).read_text(encoding="utf-8").splitlines(), ""]:
        line = raw.strip()
        if not line:
            if text:
                paragraphs.append(text)
            text = ""
        else:
            joined += text.endswith("-")
            text = f"{text} {line}" if text else line
    return Output(paragraphs=paragraphs, joined=joined)
