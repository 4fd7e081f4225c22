"""Address labels from a table."""

import csv
from collections.abc import Iterable, Iterator
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "label_blocks",
    "description": "Makes address labels from a table: the name and below it each line of the address, of which a cell may hold several; and how many lines the longest label has",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="A table with the columns name, address and note; cells may stand in quotes")


class Output(BaseModel):
    labels: list[list[str]]
    longest: int
    notes: list[str]


def rows(text: str) -> Iterator[dict[str, str]]:
    yield from csv.DictReader(text.splitlines(keepends=True))


def label(row: dict[str, str]) -> list[str]:
    lines = [row["name"], *row["address"].split("\n")]
    return [line.strip() for line in lines if line.strip()]


def longest(labels: Iterable[list[str]]) -> int:
    return max((len(lines) for lines in labels), default=0)


def run(input: Input) -> Output:
    labels, notes = [], []
    for row in rows(Path(input.path).read_text(encoding="utf-8")):
        labels.append(label(row))
        if row.get("note"):
            notes.append(f"{row['name']}: {row['note']}")
    return Output(labels=labels, longest=longest(labels), notes=notes)
