"""Breaks of the crop rotation in a garden."""

import csv
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "crop_rotation",
    "description": "Beds in which a family of plants comes back too early, from a garden's diary",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="CSV with year, bed and crop, in any order")
    families: dict[str, str] = Field(description="The family of each crop; a crop without one is its own family")
    pause: int = Field(3, description="Years until a family may come back; a pause of 3 allows 2023 and 2026")


class Output(BaseModel):
    breaks: list[str]


def run(input: Input) -> Output:
    grown: dict[tuple[str, str], list[int]] = {}
    with Path(input.path).open(newline="", encoding="utf-8") as handle:
        for row in csv.DictReader(handle):
            crop = row["crop"].strip().lower()
            family = input.families.get(crop, crop)
            grown.setdefault((row["bed"], family), []).append(int(row["year"]))
    breaks = []
    for (bed, family), years in sorted(grown.items()):
        years.sort()
        for before, after in zip(years, years[1:]):
            if 0 < after - before <= input.pause:
                breaks.append(f"{bed}: {family} {before} and {after}")
    return Output(breaks=breaks)
