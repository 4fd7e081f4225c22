"""Adds up what pickers bring in."""

from itertools import groupby
from operator import attrgetter
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "picker_crates",
    "description": "The crates and kilograms that each picker has brought in during a day, the picker with the most kilograms (the first by name of several), and the number of deliveries",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="Lines of the form: picker;crates;kilograms")


class Delivery(BaseModel):
    picker: str
    crates: int
    weight: float


class Output(BaseModel):
    crates: dict[str, int]
    kilograms: dict[str, float]
    best: str | None
    deliveries: int


def read(path: str) -> list[Delivery]:
    found = []
    for line in Path(path).read_text(encoding="utf-8").splitlines():
        if line.strip():
            picker, crates, weight = (part.strip() for part in line.split(";"))
            found.append(Delivery(picker=picker, crates=int(crates), weight=float(weight)))
    return found


def run(input: Input) -> Output:
    deliveries = read(input.path)
    crates: dict[str, int] = {}
    kilograms: dict[str, float] = {}
    by_picker = attrgetter("picker")
    for picker, group in groupby(sorted(deliveries, key=by_picker), key=by_picker):
        brought = list(group)
        crates[picker] = sum(delivery.crates for delivery in brought)
        kilograms[picker] = round(sum(delivery.weight for delivery in brought), 2)
    best = min(kilograms, key=lambda picker: (-kilograms[picker], picker), default=None)
    return Output(crates=crates, kilograms=kilograms, best=best, deliveries=len(deliveries))
