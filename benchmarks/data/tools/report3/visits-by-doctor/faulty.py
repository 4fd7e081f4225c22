"""Visits by doctor."""

from itertools import groupby
from operator import itemgetter
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "visits_by_doctor",
    "description": "Visits of a practice by doctor, with how many there were and the first and last time, from a list in order of time",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="Lines of the form: time doctor patient")


class Group(BaseModel):
    visits: int
    first: str
    last: str


class Output(BaseModel):
    doctors: dict[str, Group]


def lines(path: str) -> list[tuple[str, str]]:
    """Doctor and time of each visit."""
    split = (line.split(maxsplit=2) for line in Path(path).read_text(encoding="utf-8").splitlines())
    return [(parts[1], parts[0]) for parts in split if len(parts) > 1]


def run(input: Input) -> Output:
    doctors = {}
    for doctor, group in groupby(lines(input.path), key=itemgetter(0)):
        times = [time for _, time in group]
        doctors[doctor] = Group(visits=len(times), first=times[0], last=times[-1])
    return Output(doctors=dict(sorted(doctors.items())))
