"""Table of a race."""

import csv
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "race_table",
    "description": "Table of a race: the most points first, those with equally many by their name, with their places",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="CSV without headers: name, points of each round")
    first: int = Field(10, ge=1)


class Output(BaseModel):
    table: list[str]


@dataclass(slots=True)
class Runner:
    name: str
    points: int

    @classmethod
    def of(cls, row: list[str]) -> "Runner":
        name, *rounds = (cell.strip() for cell in row)
        return cls(name, sum(int(cell) for cell in rounds if cell))


def placed(runners: list[Runner]) -> list[str]:
    """Those with equally many points share a place."""
    shown: list[str] = []
    place, before = 0, None
    for number, runner in enumerate(runners, start=1):
        if runner.points != before:
            place, before = number, runner.points
        shown.append(f"{place}. {runner.name} ({runner.points})")
    return shown


def run(input: Input) -> Output:
    with Path(input.path).open(encoding="utf-8", newline="") as file:
        runners = [Runner.of(row) for row in csv.reader(file) if row]
    runners.sort(key=lambda runner: (-runner.points, runner.name))
    return Output(table=placed(runners)[: input.first])
