"""Fields of a form letter."""

import re
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "letter_fields",
    "description": "Fill the fields of a letter, such as {{name}} or {{name|default}}, from given values",
    "effects": ["read"],
    "dependencies": [],
}

FIELD = re.compile(r"\{\{\s*(\w+)\s*(?:\|([^{}]*))?\}\}")


class Input(BaseModel):
    path: str
    values: dict[str, str | int | None] = Field(description="null is no value")


class Output(BaseModel):
    text: str
    missing: list[str] = Field(description="Fields with neither a value nor a default, which stay as they are")


def run(input: Input) -> Output:
    missing: list[str] = []

    def fill(found: re.Match[str]) -> str:
        name, default = found[1], found[2]
        value = input.values.get(name)
        if value:
            return str(value)
        if default is not None:
            return default.strip()
        if name not in missing:
            missing.append(name)
        return found[0]

    text = FIELD.sub(fill, Path(input.path).read_text(encoding="utf-8"))
    return Output(text=text, missing=missing)
