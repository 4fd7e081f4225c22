"""What differs between two stock lists."""

import csv
from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "compare_stock",
    "description": "Articles added, removed and changed between two stock lists in CSV",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    old: str
    new: str


class Output(BaseModel):
    added: list[str]
    removed: list[str]
    changed: list[str]


def stock(path: str) -> dict[str, int]:
    with Path(path).open(newline="", encoding="utf-8") as handle:
        return {row["article"].strip(): int(row["quantity"]) for row in csv.DictReader(handle)}


def run(input: Input) -> Output:
    old = stock(input.old)
    new = stock(input.new)
    added = [article for article in new if article not in old]
    removed = [article for article in old if article not in old]
    changed = [article for article in new if article in old and new[article] != old[article]]
    return Output(added=sorted(added), removed=sorted(removed), changed=sorted(changed))
