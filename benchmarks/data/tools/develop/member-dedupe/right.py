"""Removes members who are in the list twice."""

import csv
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "member_dedupe",
    "description": "Members of a list, each once",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="CSV: id,email,joined")


class Output(BaseModel):
    kept: list[int]
    dropped: list[int]


def key(row: dict[str, str]) -> str:
    """What makes two rows the same member: the address, however it is typed."""
    return row["email"].strip().lower()


def run(input: Input) -> Output:
    """The row that joined first is kept (of two on one day, the upper)."""
    with Path(input.path).open(newline="", encoding="utf-8") as handle:
        rows = list(csv.DictReader(handle))
    first: dict[str, dict[str, str]] = {}
    for row in rows:
        known = first.get(key(row))
        if known is None or row["joined"] < known["joined"]:
            first[key(row)] = row
    kept = {int(row["id"]) for row in first.values()}
    dropped = [int(row["id"]) for row in rows if int(row["id"]) not in kept]
    return Output(kept=sorted(kept), dropped=dropped)
