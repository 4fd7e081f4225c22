"""Fills templates: {{name}} is replaced, {{name|text}} has a text for when the name is not given."""

import re
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "letter_fill",
    "description": "Fill the fields of a letter",
    "effects": ["read"],
    "dependencies": [],
}

FIELD = re.compile(r"\{\{\s*(\w+)\s*(?:\|([^}]*))?\}\}")


class Input(BaseModel):
    path: str
    values: dict[str, str]


class Output(BaseModel):
    text: str
    missing: list[str] = Field(description="Fields without value and default; they stay as they are")


def run(input: Input) -> Output:
    missing: list[str] = []

    def fill(match: re.Match[str]) -> str:
        name, default = match.group(1), match.group(2)
        if name in input.values:
            return input.values[name]
        if default is not None:
            return default
        missing.append(name)
        return match.group()

    text = FIELD.sub(fill, Path(input.path).read_text(encoding="utf-8"))
    return Output(text=text, missing=missing)
