"""Medians by group."""

import csv
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "group_median",
    "description": "The median of each group's values (of an even number the mean of the two in the middle), the groups' sizes, and the group with the highest median, the first by name of equals",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="CSV with group and value")


class Output(BaseModel):
    medians: dict[str, float]
    sizes: dict[str, int]
    highest: str | None


def median(values: list[float]) -> float:
    order = sorted(values)
    return order[len(order) // 2]


def run(input: Input) -> Output:
    groups: dict[str, list[float]] = {}
    with Path(input.path).open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if row["value"].strip():
                groups.setdefault(row["group"].strip(), []).append(float(row["value"]))
    names = sorted(groups)
    medians = {name: median(groups[name]) for name in names}
    return Output(
        medians=medians,
        sizes={name: len(groups[name]) for name in names},
        highest=max(names, key=lambda name: medians[name], default=None),
    )
