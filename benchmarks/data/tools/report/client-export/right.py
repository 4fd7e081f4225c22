"""Reads the clients that a program for addresses has exported."""

import csv
import io
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "client_export",
    "description": "The clients of an export in each city with their numbers, the names of those without a mail address, and the highest number that has been given away",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="A table in UTF-8 with the columns number, name, city and mail, in any order")


class Output(BaseModel):
    cities: dict[str, list[str]]
    without_mail: list[str]
    highest: int


def table(path: str) -> list[dict[str, str]]:
    text = Path(path).read_text(encoding="utf-8-sig")
    return list(csv.DictReader(io.StringIO(text)))


def label(row: dict[str, str]) -> str:
    return f"{row['number']} {row['name']}"


def run(input: Input) -> Output:
    """Clients stay in the order of the export; a client without a city stands below "-"."""
    cities: dict[str, list[str]] = {}
    without_mail = []
    highest = 0
    for row in table(input.path):
        city = row["city"].strip() or "-"
        cities.setdefault(city, []).append(label(row))
        if not row["mail"].strip():
            without_mail.append(row["name"])
        highest = max(highest, int(row["number"]))
    return Output(cities=cities, without_mail=without_mail, highest=highest)
