"""Temperatures in notes."""

import re
from pathlib import Path
from statistics import fmean

from pydantic import BaseModel, Field

TOOL = {
    "name": "frost_notes",
    "description": "Lowest, highest and mean temperature of notes in which temperatures stand as 12°, -3.5° or +4 °C",
    "effects": ["read"],
    "dependencies": [],
}

TEMPERATURE = re.compile(r"([-+]?\d+(?:\.\d+)?)\s*°")


class Input(BaseModel):
    path: str = Field(description="Text with temperatures in it")
    below: float = Field(0.0, description="What counts as frost")


class Output(BaseModel):
    lowest: float | None
    highest: float | None
    mean: float | None
    frost: int


def temperatures(text: str) -> list[float]:
    return [float(match) for match in TEMPERATURE.findall(text)]


def run(input: Input) -> Output:
    found = temperatures(Path(input.path).read_text(encoding="utf-8"))
    if not found:
        return Output(lowest=None, highest=None, mean=None, frost=0)
    return Output(
        lowest=min(found),
        highest=max(found),
        mean=round(fmean(found), 1),
        frost=sum(value < input.below for value in found),
    )
