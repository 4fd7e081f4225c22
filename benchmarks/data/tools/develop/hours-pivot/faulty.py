"""A table of hours, people down and projects across."""

import csv
from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "hours_pivot",
    "description": "Writes a CSV table of hours by person and project, and answers the totals of people and projects",
    "effects": ["read", "write"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str
    out: str = "pivot.csv"


class Output(BaseModel):
    people: dict[str, float]
    projects: dict[str, float]
    cells: int


def run(input: Input) -> Output:
    cells: dict[tuple[str, str], float] = {}
    with open(input.path, newline="", encoding="utf-8") as handle:
        for row in csv.DictReader(handle):
            key = (row["person"].strip(), row["project"].strip())
            cells[key] = float(row["hours"])

    people = sorted({person for person, _ in cells})
    projects = sorted({project for _, project in cells})
    with Path(input.out).open("w", newline="", encoding="utf-8") as handle:
        writer = csv.writer(handle, lineterminator="\n")
        writer.writerow(["person", *projects])
        for person in people:
            writer.writerow([person, *(cells.get((person, project), "") for project in projects)])

    return Output(
        people={who: sum(cells.get((who, project), 0.0) for project in projects) for who in people},
        projects={what: sum(cells.get((who, what), 0.0) for who in people) for what in projects},
        cells=len(cells),
    )
