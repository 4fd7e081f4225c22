"""Reads the attendees of an event."""

import csv
from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "attendee_import",
    "description": "Who comes to an event by an export whose columns are named name, email and seats in its first line, in any order and perhaps with others between them; how many seats are needed, the mail domains, and who signed up more than once",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str


class Output(BaseModel):
    names: dict[str, str]
    seats: int
    domains: list[str]
    again: list[str]


def run(input: Input) -> Output:
    """The last line of an address counts; where no number of seats is given it is one."""
    names: dict[str, str] = {}
    seats: dict[str, int] = {}
    again: list[str] = []
    with Path(input.path).open(encoding="utf-8", newline="") as file:
        rows = csv.reader(file, delimiter=";")
        header = [cell.strip().lower() for cell in next(rows, [])]
        for row in rows:
            if not row:
                continue
            values = dict(zip(header, row))
            name, email, number = values["name"], values["email"], values["seats"]
            email = email.strip().lower()
            if email in names and email not in again:
                again.append(email)
            names[email] = name.strip()
            seats[email] = int(number) if number.strip().isdigit() else 1
    domains = sorted({email.rpartition("@")[2] for email in names})
    return Output(names=names, seats=sum(seats.values()), domains=domains, again=again)
