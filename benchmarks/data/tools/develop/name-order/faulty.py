"""People in order of family name."""

from itertools import groupby

from pydantic import BaseModel

TOOL = {
    "name": "name_order",
    "description": "Put names in order by family name (the last word), then first names, where capitals and accents do not matter (Ö like o) and equal ones keep their order; write 'Family, First' and group them by first letter",
    "effects": ["pure"],
    "dependencies": [],
}


class Input(BaseModel):
    names: list[str]


class Output(BaseModel):
    names: list[str]
    letters: dict[str, int]


def plain(text: str) -> str:
    """Small letters."""
    return text.casefold()


def split(name: str) -> tuple[str, str]:
    first, _, family = name.strip().rpartition(" ")
    return family, first.strip()


def run(input: Input) -> Output:
    people = [split(name) for name in input.names if name.strip()]
    people.sort(key=lambda person: (plain(person[0]), plain(person[1])))
    names = [f"{family}, {first}" if first else family for family, first in people]
    letters = {}
    for letter, same in groupby(names, key=lambda name: plain(name)[0].upper()):
        letters[letter] = len(list(same))
    return Output(names=names, letters=letters)
