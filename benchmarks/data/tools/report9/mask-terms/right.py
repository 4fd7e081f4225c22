"""Covers words in a text that nobody should read."""

import re
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "mask_terms",
    "description": "Replace given terms in a text by a mask, and count how often each occurred",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="The text")
    terms: list[str] = Field(description="Words or phrases; small and capital letters are the same")
    mask: str = Field(default="*", description="One character stands for each letter; a longer text for the whole term")
    inside: bool = Field(default=False, description="Also within longer words")


class Output(BaseModel):
    text: str
    counts: dict[str, int]


def pattern(term: str, inside: bool) -> str:
    """Any white space between the words of a term is as good as another."""
    words = r"\s+".join(re.escape(word) for word in term.split())
    return words if inside else rf"(?<!\w){words}(?!\w)"


def run(input: Input) -> Output:
    text = Path(input.path).read_text(encoding="utf-8")
    counts: dict[str, int] = {}

    def cover(match: re.Match[str]) -> str:
        if len(input.mask) != 1:
            return input.mask
        return re.sub(r"\S", lambda _: input.mask, match[0])

    for term in sorted(input.terms, key=len, reverse=True):
        if not term.strip():
            continue
        wanted = pattern(term, input.inside)
        counts[term] = len(re.findall(wanted, text, re.IGNORECASE))
        text = re.sub(wanted, cover, text, flags=re.IGNORECASE)
    return Output(text=text, counts=counts)
