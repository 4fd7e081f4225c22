"""The end of a diary."""

from collections.abc import Iterable
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "diary_tail",
    "description": "Last entries of a diary, with how many characters they have; none for a count of 0",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="Entries that begin with a line such as == Monday")
    count: int = Field(3, ge=0)
    without: str = Field("", description="Entries that have this word in their title do not count")


class Output(BaseModel):
    titles: list[str]
    characters: int


def entries(lines: Iterable[str]) -> list[tuple[str, list[str]]]:
    found: list[tuple[str, list[str]]] = []
    for line in lines:
        if line.startswith("== "):
            found.append((line[3:].strip(), []))
        elif found:
            found[-1][1].append(line.strip())
    return found


def last(items: list[tuple[str, list[str]]], count: int) -> list[tuple[str, list[str]]]:
    if count == 0:
        return []
    return items[-count:]


def run(input: Input) -> Output:
    every = entries(Path(input.path).read_text(encoding="utf-8").splitlines())
    if input.without:
        every = [entry for entry in every if input.without not in entry[0]]
    shown = last(every, input.count)
    return Output(titles=[title for title, _ in shown], characters=sum(len(" ".join(text)) for _, text in shown))
