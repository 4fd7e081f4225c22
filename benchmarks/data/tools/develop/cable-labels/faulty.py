"""The labels of cables in their order."""

import re
from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "cable_labels",
    "description": "The labels of cables in the order in which people look for them (A2 before A10, capitals make no difference), the labels that occur more than once, and how many there are for each beginning without a number",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str


class Output(BaseModel):
    labels: list[str]
    double: list[str]
    beginnings: dict[str, int]


def order(label: str) -> list[int | str]:
    """The letters of a label and its numbers, by turns."""
    return [int(part) if part.isdecimal() else part.casefold() for part in re.findall(r"\d+|\D+", label)]


def run(input: Input) -> Output:
    """One label on each line; of two that differ in capitals or leading zeros alone the order is that of their signs."""
    given = [line.strip() for line in Path(input.path).read_text(encoding="utf-8").splitlines()]
    labels = [label for label in given if label]
    beginnings: dict[str, int] = {}
    for label in labels:
        beginning = re.split(r"\d", label)[0].casefold()
        beginnings[beginning] = beginnings.get(beginning, 0) + 1
    ordered = sorted(sorted(set(labels)), key=order)
    return Output(
        labels=ordered,
        double=[label for label in ordered if labels.count(label) > 1],
        beginnings=dict(sorted(beginnings.items())),
    )
