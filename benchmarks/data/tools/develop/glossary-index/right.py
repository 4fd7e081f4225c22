"""An index of terms by letters."""

import unicodedata
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "glossary_index",
    "description": "Terms of a glossary under their first letters, accents aside; rare letters under other",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="Lines of the form: term: explanation")
    least: int = Field(1, description="Letters with fewer terms than this go to the heading other")


class Output(BaseModel):
    headings: dict[str, list[str]]
    terms: int


def bare(text: str) -> str:
    """A text in small letters and without accents."""
    parts = unicodedata.normalize("NFD", text)
    return "".join(part for part in parts if not unicodedata.combining(part)).casefold()


def letter(term: str) -> str:
    first = bare(term)[:1].upper()
    return first if first.isalpha() else "0-9"


def read(path: str) -> list[str]:
    lines = Path(path).read_text(encoding="utf-8").splitlines()
    return [line.split(":")[0].strip() for line in lines if ":" in line]


def run(input: Input) -> Output:
    terms = sorted(set(read(input.path)), key=lambda term: (bare(term), term))
    groups: dict[str, list[str]] = {}
    for term in terms:
        groups.setdefault(letter(term), []).append(term)
    headings = {name: group for name, group in sorted(groups.items()) if len(group) >= input.least}
    rest = [term for term in terms if letter(term) not in headings]
    if rest:
        headings["other"] = rest
    return Output(headings=headings, terms=len(terms))
