"""Picks the contacts that may be written to."""

import csv
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "consent_list",
    "description": "The addresses of the contacts that agreed to get mail, the names of those that did not agree, the names of those that agreed but have no address, and the share of all contacts that agreed (in percent, with one decimal)",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(
        description="A CSV file with a header and the columns name, email and consent (true, false or empty, which means that nobody asked; in small letters or large ones)"
    )


class Output(BaseModel):
    write_to: list[str]
    not_agreed: list[str]
    no_address: list[str]
    share: float


def agreed(row: dict[str, str]) -> bool:
    return bool(row["consent"].strip())


def run(input: Input) -> Output:
    """Contacts in the order of the file; the share of nobody is 0."""
    with Path(input.path).open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    willing = [row for row in rows if agreed(row)]
    return Output(
        write_to=[row["email"].strip() for row in willing if row["email"].strip()],
        not_agreed=[row["name"].strip() for row in rows if not agreed(row)],
        no_address=[row["name"].strip() for row in willing if not row["email"].strip()],
        share=round(100 * len(willing) / len(rows), 1) if rows else 0.0,
    )
