"""Readings of a blood pressure diary."""

import csv
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "blood_pressure",
    "description": "Blood pressure readings by class, and the mean; the first of a day may be left out",
    "effects": ["read"],
    "dependencies": [],
}

CLASSES = [
    ("high, grade 2", 160, 100),
    ("high, grade 1", 140, 90),
    ("high normal", 130, 85),
    ("normal", 120, 80),
]


class Input(BaseModel):
    path: str = Field(description="CSV with day, time, systolic and diastolic")
    first: bool = Field(True, description="Whether the first reading of a day counts where there are more")


class Output(BaseModel):
    classes: dict[str, int]
    mean: str | None
    worst: str | None = Field(description="Day of the highest systolic value, the earliest such day")


def class_of(systolic: int, diastolic: int) -> str:
    for name, upper, lower in CLASSES:
        if systolic >= upper or diastolic >= lower:
            return name
    return "optimal"


def run(input: Input) -> Output:
    days: dict[str, list[tuple[int, int]]] = {}
    with Path(input.path).open(newline="", encoding="utf-8") as handle:
        for row in sorted(csv.DictReader(handle), key=lambda row: (row["day"], row["time"])):
            days.setdefault(row["day"], []).append((int(row["systolic"]), int(row["diastolic"])))
    if not input.first:
        days = {day: pairs[1:] if len(pairs) > 1 else pairs for day, pairs in days.items()}
    pairs = [pair for pairs in days.values() for pair in pairs]
    if not pairs:
        return Output(classes={}, mean=None, worst=None)
    names = [class_of(*pair) for pair in pairs]
    systolic, diastolic = (sum(values) / len(pairs) for values in zip(*pairs, strict=True))
    return Output(
        classes={name: names.count(name) for name in sorted(set(names))},
        mean=f"{systolic:.1f}/{diastolic:.1f}",
        worst=max(days, key=lambda day: max(days[day])[0]),
    )
