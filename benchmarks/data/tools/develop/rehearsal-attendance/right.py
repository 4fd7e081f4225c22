"""Attendance of a choir's rehearsals."""

import csv
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "rehearsal_attendance",
    "description": "How often the members of a choir came to rehearsals, in percent, and who came too seldom",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="CSV: name, then a column for each rehearsal with x (came), e (excused) or nothing")
    least: int = Field(60, description="Percent below which a member is named")


class Output(BaseModel):
    percent: dict[str, int]
    seldom: list[str]


def share(marks: list[str]) -> int:
    """Percent of the rehearsals, without those excused; 100 for who was excused from all."""
    counted = [mark for mark in marks if mark != "e"]
    if not counted:
        return 100
    return 100 * counted.count("x") // len(counted)


def run(input: Input) -> Output:
    with Path(input.path).open(newline="", encoding="utf-8") as handle:
        rows = list(csv.reader(handle))
    percent: dict[str, int] = {}
    for row in rows[1:]:
        if not row or not row[0].strip():
            continue
        percent[row[0].strip()] = share([mark.strip().lower() for mark in row[1:]])
    return Output(percent=percent, seldom=[name for name, value in percent.items() if value < input.least])
