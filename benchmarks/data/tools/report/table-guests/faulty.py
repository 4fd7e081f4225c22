"""Seats the guests of a dinner."""

from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "table_guests",
    "description": "The guests at each table of a dinner, seated in the order of the list without those who have said no; how many are missing at the last table, and how many do not come",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="Lines of the form: name;yes, name;no or name;maybe")
    seats: int = Field(4, ge=1, description="Seats at a table")


class Output(BaseModel):
    tables: list[list[str]]
    empty: int
    declined: int


def read(path: str) -> list[tuple[str, str]]:
    guests = []
    for line in Path(path).read_text(encoding="utf-8").splitlines():
        if line.strip():
            name, answer = line.split(";")
            guests.append((name.strip(), answer.strip().lower()))
    return guests


def seat(names: list[str], seats: int) -> list[list[str]]:
    return [names[first : first + seats] for first in range(0, len(names), seats)]


def run(input: Input) -> Output:
    guests = read(input.path)
    invited = len(guests)
    for guest in guests:
        if guest[1] == "no":
            guests.remove(guest)
    tables = seat([name for name, _ in guests], input.seats)
    empty = input.seats - len(tables[-1]) if tables else 0
    return Output(tables=tables, empty=empty, declined=invited - len(guests))
