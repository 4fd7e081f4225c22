"""Templates with slots."""

import re

from pydantic import BaseModel

TOOL = {
    "name": "letter_slots",
    "description": "Fills the slots of a template, such as {{name}}, and says which slots have no value and which values no slot",
    "effects": ["pure"],
    "dependencies": [],
}


class Input(BaseModel):
    template: str
    values: dict[str, str]


class Output(BaseModel):
    text: str
    missing: list[str]
    unused: list[str]


SLOT = re.compile(r"\{\{(.+?)\}\}")


def run(input: Input) -> Output:
    """Blanks beside a slot's name do not count. A slot without a value stays as it is; missing ones in their order, once each."""
    missing: list[str] = []
    used = set()

    def filled(match: re.Match[str]) -> str:
        name = match[1].strip()
        if name in input.values:
            used.add(name)
            return input.values[name]
        if name not in missing:
            missing.append(name)
        return match[0]

    text = SLOT.sub(filled, input.template)
    unused = sorted(name for name in input.values if name not in used)
    return Output(text=text, missing=missing, unused=unused)
