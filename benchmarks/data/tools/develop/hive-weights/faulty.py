"""Weight changes of beehives."""

import csv
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "hive_weights",
    "description": "Weight change of each beehive between its first and its last weighing, and the hives that lost more than a given weight",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="CSV with hive, date (YYYY-MM-DD) and kg, in any order")
    loss: float = Field(2.0, description="Hives that lost more are named")


class Output(BaseModel):
    change: dict[str, float]
    to_feed: list[str]


def weighings(path: str) -> dict[str, list[tuple[str, float]]]:
    """Date and weight of each hive."""
    found: dict[str, list[tuple[str, float]]] = {}
    with Path(path).open(newline="", encoding="utf-8") as handle:
        for row in csv.DictReader(handle):
            found.setdefault(row["hive"], []).append((row["date"], float(row["kg"])))
    return found


def run(input: Input) -> Output:
    change = {}
    for hive, rows in weighings(input.path).items():
        ordered = list(rows)
        first, last = ordered[0], ordered[-1]
        change[hive] = round(last[1] - first[1], 2)
    hungry = [hive for hive, kg in change.items() if kg < -input.loss]
    return Output(change=change, to_feed=sorted(hungry))
