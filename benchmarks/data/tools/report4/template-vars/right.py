"""Filling in variables of a text."""

import re

from pydantic import BaseModel, Field

TOOL = {
    "name": "template_vars",
    "description": "A text with its {{variables}} filled in; those without a value stay and are named",
    "effects": ["pure"],
    "dependencies": [],
}

VARIABLE = re.compile(r"\{\{\s*(.+?)\s*\}\}")


class Input(BaseModel):
    text: str
    values: dict[str, str] = Field(description="by the names of the variables")


class Output(BaseModel):
    text: str
    missing: list[str] = Field(description="in the order of the text, each once")
    filled: int


class Filling:
    """Keeps in mind what it could not fill."""

    def __init__(self, values: dict[str, str]) -> None:
        self.values = values
        self.missing: dict[str, None] = {}
        self.filled = 0

    def __call__(self, match: re.Match[str]) -> str:
        name = match[1]
        if name not in self.values:
            self.missing[name] = None
            return match[0]
        self.filled += 1
        return self.values[name]


def run(input: Input) -> Output:
    filling = Filling(input.values)
    text = VARIABLE.sub(filling, input.text)
    return Output(text=text, missing=list(filling.missing), filled=filling.filled)
