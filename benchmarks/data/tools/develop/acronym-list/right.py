"""Acronyms of a text."""

import re
from collections import Counter
from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "acronym_list",
    "description": "List the acronyms (2 to 6 capitals) of a text with the words that stand before their first bracket, as many words as letters, and those that are never explained",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str


class Output(BaseModel):
    meanings: dict[str, str]
    unexplained: list[str]
    uses: dict[str, int]


def meanings(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for match in re.finditer(r"\(([A-Z]{2,6})\)", text):
        short = match[1]
        words = text[: match.start()].split()[-len(short) :]
        initials = "".join(word[0] for word in words).upper()
        if initials == short:
            found.setdefault(short, " ".join(words))
    return found


def run(input: Input) -> Output:
    text = Path(input.path).read_text(encoding="utf-8")
    uses = Counter(re.findall(r"\b[A-Z]{2,6}\b", text))
    known = meanings(text)
    return Output(
        meanings=dict(sorted(known.items())),
        unexplained=sorted(set(uses) - set(known)),
        uses=dict(sorted(uses.items())),
    )
