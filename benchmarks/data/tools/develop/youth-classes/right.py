"""Age classes of a club's young members."""

import csv
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "youth_classes",
    "description": "The age class in which the young members of a club start, by the year that the season ends in",
    "effects": ["read"],
    "dependencies": [],
}

CLASSES = [(8, "U8"), (10, "U10"), (12, "U12"), (14, "U14"), (16, "U16"), (18, "U18")]


class Input(BaseModel):
    path: str = Field(description="CSV with name and born (YYYY-MM-DD)")
    season: str = Field(description="Such as 2026/27 or 2027; a class is for who is younger than its number in all of the season's last year")


class Output(BaseModel):
    classes: dict[str, list[str]]
    adults: int


def last_year(season: str) -> int:
    first, _, second = season.partition("/")
    return int(first) + 1 if second else int(first)


def run(input: Input) -> Output:
    year = last_year(input.season)
    classes: dict[str, list[str]] = {}
    adults = 0
    with Path(input.path).open(newline="", encoding="utf-8") as handle:
        for row in csv.DictReader(handle):
            age = year - int(row["born"][:4])
            fitting = [name for limit, name in CLASSES if age < limit]
            if fitting:
                classes.setdefault(fitting[0], []).append(row["name"])
            else:
                adults += 1
    return Output(classes={name: sorted(classes[name]) for _, name in CLASSES if name in classes}, adults=adults)
