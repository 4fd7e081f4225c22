"""A team from a list of members."""

import csv
from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "roster_import",
    "description": "The members of a team from a CSV file whose head names the columns name, team and born, as spreadsheets save it, with or without the mark at its beginning; youngest first",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str
    team: str


class Output(BaseModel):
    members: list[str]
    others: int
    years: list[int]


def run(input: Input) -> Output:
    """Of the same year in the order of the file; the team in any case. Years are those of the first and the last born."""
    members = []
    others = 0
    with Path(input.path).open(encoding="utf-8-sig", newline="") as file:
        for row in csv.DictReader(file):
            if row["team"].strip().lower() != input.team.lower():
                others += 1
                continue
            members.append((int(row["born"]), row["name"].strip()))
    members.sort(key=lambda member: -member[0])
    years = [year for year, _ in members]
    return Output(
        members=[f"{name} ({year})" for year, name in members],
        others=others,
        years=[min(years), max(years)] if years else [],
    )
