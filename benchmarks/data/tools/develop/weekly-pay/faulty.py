"""Pay of a week: what is over forty hours is paid one and a half times."""

import csv
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "weekly_pay",
    "description": "Pay of the week from a sheet of hours",
    "effects": ["read"],
    "dependencies": [],
}

WEEK = 40.0
FACTOR = 1.5


class Input(BaseModel):
    path: str = Field(description="name;mon;...;sat with hours, empty where nobody worked")
    wage: float = Field(gt=0, description="Per hour")


class Output(BaseModel):
    pay: dict[str, float]
    overtime: dict[str, float]


def pay_of(hours: float, wage: float) -> float:
    if hours > WEEK:
        return hours * wage * FACTOR
    return hours * wage


def run(input: Input) -> Output:
    pay, overtime = {}, {}
    with Path(input.path).open(newline="", encoding="utf-8") as handle:
        for row in csv.DictReader(handle, delimiter=";"):
            name = row.pop("name")
            hours = sum(float(cell) for cell in row.values() if cell)
            pay[name] = round(pay_of(hours, input.wage), 2)
            overtime[name] = max(0.0, hours - WEEK)
    return Output(pay=pay, overtime=overtime)
