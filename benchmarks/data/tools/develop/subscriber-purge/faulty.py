"""Readers whose subscription has run out."""

import csv
from datetime import date, timedelta
from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "subscriber_purge",
    "description": "Which readers stay on a list of subscriptions on a day and which are taken off, because what they paid for ended more than some days of grace before; tells also how many of those who stay are in their days of grace",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str
    day: date
    grace: int = 30


class Output(BaseModel):
    stay: list[str]
    gone: list[str]
    in_grace: int


def run(input: Input) -> Output:
    """A CSV file with the columns "name" and "paid until"; a reader without a day there has it for ever."""
    with Path(input.path).open(encoding="utf-8", newline="") as file:
        readers = list(csv.DictReader(file))
    oldest = input.day - timedelta(days=input.grace)
    gone = []
    for reader in readers:
        until = reader["paid until"].strip()
        if until and date.fromisoformat(until) < oldest:
            readers.remove(reader)
            gone.append(reader["name"])
    late = [row for row in readers if row["paid until"].strip() and date.fromisoformat(row["paid until"].strip()) < input.day]
    return Output(stay=[reader["name"] for reader in readers], gone=gone, in_grace=len(late))
