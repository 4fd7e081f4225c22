"""Who comes to a party."""

import unicodedata
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "guest_list",
    "description": "Guests from the lists of several hosts, each once, in the order of the alphabet, and who was named more than once",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    paths: list[str] = Field(description="One name a line, perhaps with +1 or more behind it")
    limit: int = Field(default=0, ge=0, description="No more guests than these, those with most votes first; 0 for all")


class Output(BaseModel):
    guests: list[str]
    twice: list[str]
    heads: int


def key(name: str) -> str:
    """The same for each way to write a name; an accent stays a difference."""
    return unicodedata.normalize("NFC", " ".join(name.split())).casefold()


def plain(name: str) -> str:
    """Without accents, for the order of the alphabet."""
    letters = unicodedata.normalize("NFD", name)
    return "".join(letter for letter in letters if not unicodedata.combining(letter)).casefold()


def parse(line: str) -> tuple[str, int]:
    name, plus, more = line.rpartition("+")
    if plus and more.strip().isdigit():
        return name.strip(), 1 + int(more)
    return line.strip(), 1


def run(input: Input) -> Output:
    names: dict[str, str] = {}
    heads: dict[str, int] = {}
    votes: dict[str, int] = {}
    for path in input.paths:
        for line in Path(path).read_text(encoding="utf-8").splitlines():
            if not line.strip():
                continue
            name, count = parse(line)
            mine = key(name)
            names.setdefault(mine, unicodedata.normalize("NFC", name))
            heads[mine] = max(heads.get(mine, 0), count)
            votes[mine] = votes.get(mine, 0) + 1
    chosen = sorted(names, key=lambda mine: (-votes[mine], plain(names[mine])))
    chosen = chosen[: input.limit] if input.limit else chosen
    return Output(
        guests=sorted((names[mine] for mine in chosen), key=plain),
        twice=[names[mine] for mine in names if votes[mine] > 1],
        heads=sum(heads[mine] for mine in chosen),
    )
