"""Numbers for the footnotes of a text."""

import re
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "footnote_numbers",
    "description": "Number the footnotes of a text by their first mention",
    "effects": ["read"],
    "dependencies": [],
}

MENTION = re.compile(r"\[\^([\w-]+)\](?!:)")


class Input(BaseModel):
    path: str = Field(description="A text with mentions [^name], and the notes as lines [^name]: text")


class Output(BaseModel):
    text: str
    notes: list[str]
    unused: list[str]


def run(input: Input) -> Output:
    notes: dict[str, str] = {}
    body = []
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        found = re.match(r"\[\^([\w-]+)\]:\s*(.*)", line)
        if found:
            notes[found[1]] = found[2]
        else:
            body.append(line)
    numbers: list[str] = []

    def number(found: re.Match[str]) -> str:
        numbers.append(found[1])
        return f"[{len(numbers)}]"

    text = MENTION.sub(number, "\n".join(body).strip())
    listed = [f"{place}. {notes.get(name, '?')}" for place, name in enumerate(numbers, start=1)]
    return Output(text=text, notes=listed, unused=[name for name in notes if name not in numbers])
