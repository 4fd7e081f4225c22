"""Spending by category."""

import csv
from itertools import groupby
from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "spend_groups",
    "description": "Spending by category from a CSV file with category and amount: sum (two decimals), number and largest amount of each, by name of the category",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str


class Group(BaseModel):
    total: float
    count: int
    largest: float


class Output(BaseModel):
    groups: dict[str, Group]
    top: str | None


def category(row: dict[str, str]) -> str:
    return row["category"].strip()


def run(input: Input) -> Output:
    with Path(input.path).open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    groups: dict[str, Group] = {}
    for name, members in groupby(rows, key=category):
        amounts = [float(row["amount"]) for row in members]
        groups[name] = Group(total=round(sum(amounts), 2), count=len(amounts), largest=max(amounts))
    top = max(sorted(groups), key=lambda name: groups[name].total, default=None)
    return Output(groups={name: groups[name] for name in sorted(groups)}, top=top)
