"""Authors with initials."""

from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "author_initials",
    "description": "Authors as a list of references writes them: the family name, and the initials of the others",
    "effects": ["read"],
    "dependencies": [],
}

PARTICLES = {"van", "von", "de", "der", "den", "la", "di", "da"}


class Input(BaseModel):
    path: str = Field(description="One work a line; its authors are divided by semicolons, as in Jean-Paul Sartre; Vincent van Gogh")
    most: int = Field(3, description="Of works with more authors only the first is named")


class Output(BaseModel):
    works: list[str]


def initials(name: str) -> str:
    return f"{name[0].upper()}."


def short(author: str) -> str:
    """Particles belong to the family name."""
    words = author.split()
    at = len(words) - 1
    while at > 0 and words[at - 1] in PARTICLES:
        at -= 1
    family = " ".join(words[at:])
    given = " ".join(initials(word) for word in words[:at])
    return f"{family}, {given}" if given else family


def run(input: Input) -> Output:
    works = []
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        authors = [short(author) for author in line.split(";") if author.strip()]
        if len(authors) > input.most:
            works.append(f"{authors[0]} et al.")
        elif authors:
            last = authors.pop()
            works.append(f"{'; '.join(authors)} and {last}" if authors else last)
    return Output(works=works)
