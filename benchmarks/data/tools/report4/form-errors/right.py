"""Faults of forms."""

import re
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "form_errors",
    "description": "All faults of the entries of a form, entry by entry",
    "effects": ["read"],
    "dependencies": [],
}

MAIL = re.compile(r"[^@\s]+@[^@\s]+\.[a-z]{2,}")


class Input(BaseModel):
    path: str = Field(description="Lines of the form name;mail;age")
    youngest: int = 18


class Output(BaseModel):
    faults: list[str] = Field(description="1: what is wrong in the first entry")
    good: int


def faults_of(name: str, mail: str, age: str, youngest: int) -> list[str]:
    found = []
    if not name:
        found.append("no name")
    if not MAIL.fullmatch(mail):
        found.append(f"no mail address: {mail}")
    if not age.isdecimal():
        found.append("age is no number")
    elif int(age) < youngest:
        found.append("too young")
    elif int(age) > 120:
        found.append("too old")
    return found


def run(input: Input) -> Output:
    faults, good = [], 0
    for number, line in enumerate(Path(input.path).read_text(encoding="utf-8").splitlines(), 1):
        name, mail, age = (part.strip() for part in line.split(";"))
        found = faults_of(name, mail, age, input.youngest)
        faults += [f"{number}: {fault}" for fault in found]
        good += not found
    return Output(faults=faults, good=good)
