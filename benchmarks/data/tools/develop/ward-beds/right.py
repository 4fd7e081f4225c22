"""Occupied beds of a hospital ward."""

import csv
from datetime import date
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "ward_beds",
    "description": "Patients in the ward on a day, and their nights",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="CSV: patient,from,to (empty: still there)")
    day: date


class Output(BaseModel):
    occupied: list[str]
    nights: int = Field(description="Nights so far of all who had come by that day")


def parse(text: str) -> date | None:
    text = text.strip()
    return date.fromisoformat(text) if text else None


def run(input: Input) -> Output:
    """The day of leaving does not count as occupied."""
    occupied = []
    nights = 0
    with Path(input.path).open(newline="", encoding="utf-8") as handle:
        for row in csv.DictReader(handle):
            came, left = parse(row["from"]), parse(row["to"])
            if came is None or came > input.day:
                continue
            if left is None or left > input.day:
                occupied.append(row["patient"])
            end = input.day if left is None else min(left, input.day)
            nights += (end - came).days
    return Output(occupied=sorted(occupied), nights=nights)
