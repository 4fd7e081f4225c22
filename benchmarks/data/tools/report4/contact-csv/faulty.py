"""Contacts of a CSV file."""

import csv
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "contact_csv",
    "description": "Contacts of a CSV file of an office program: how to reach each of them, and who cannot be reached",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="UTF-8 with the columns name, mail and phone, in any order")
    separator: str = ";"


class Output(BaseModel):
    reach: list[str] = Field(description="name: mail, or the phone where there is no mail")
    unreachable: list[str]


def rows(path: Path, separator: str) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter=separator))


def way(row: dict[str, str]) -> str:
    """The best way to reach somebody; empty where there is none."""
    return row.get("mail") or row.get("phone") or ""


def run(input: Input) -> Output:
    reach, unreachable = [], []
    for row in rows(Path(input.path), input.separator):
        name = row.get("name") or "?"
        if way(row):
            reach.append(f"{name}: {way(row)}")
        else:
            unreachable.append(name)
    return Output(reach=reach, unreachable=unreachable)
