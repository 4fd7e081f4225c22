"""A list of references."""

import re
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "bib_cite",
    "description": "References from a BibTeX file, with the names of the authors in one form",
    "effects": ["read"],
    "dependencies": [],
}

ENTRY = re.compile(r"@\w+\{([^,]+),(.*?)\n\}", re.DOTALL)
FIELD = re.compile(r"(\w+)\s*=\s*\{?([^{}\n]*?)\}?,?\s*$", re.MULTILINE)


class Input(BaseModel):
    path: str
    style: str = Field("initials", description="initials or full: how first names are given")


class Output(BaseModel):
    references: list[str]
    surnames: dict[str, list[str]] = Field(description="Surnames of the authors of each entry")


def split(name: str) -> tuple[str, str]:
    """Surname and first names."""
    surname, first = name.split(",")
    return surname.strip(), first.strip()


def written(name: str, style: str) -> str:
    surname, first = split(name)
    if style == "initials":
        first = " ".join(f"{part[0]}." for part in first.split())
    return f"{first} {surname}".strip()


def run(input: Input) -> Output:
    references = []
    surnames: dict[str, list[str]] = {}
    for key, body in ENTRY.findall(Path(input.path).read_text(encoding="utf-8")):
        fields = {name.lower(): value.strip() for name, value in FIELD.findall(body)}
        people = [part.strip() for part in fields.get("author", "").split(" and ") if part.strip()]
        named = [part for part in people if part != "others"]
        names = [written(part, input.style) for part in named]
        listed = ", ".join(names) + (" et al." if len(named) < len(people) else "")
        references.append(
            (fields.get("year", ""), f"{listed} ({fields.get('year', 'n.d.')}): {fields['title']}")
        )
        surnames[key.strip()] = [split(part)[0] for part in named]
    return Output(references=[text for _, text in sorted(references)], surnames=surnames)
