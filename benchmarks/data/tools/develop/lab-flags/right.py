"""Flags laboratory results against reference ranges."""

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import BaseModel

TOOL = {
    "name": "lab_flags",
    "description": "Flags of results against a table of reference ranges by sex (* is both); limits belong to the range",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str
    sex: Literal["f", "m"]
    results: dict[str, float]


class Output(BaseModel):
    flags: dict[str, str]
    abnormal: int
    without_range: list[str]


@dataclass(frozen=True)
class Range:
    low: float
    high: float

    def flag(self, value: float) -> str:
        if value < self.low:
            return "L"
        return "" if value <= self.high else "H"


def ranges(path: str, sex: str) -> dict[str, Range]:
    with Path(path).open(newline="", encoding="utf-8") as handle:
        rows = [row for row in csv.DictReader(handle) if row["sex"] in (sex, "*")]
    return {row["test"]: Range(float(row["low"]), float(row["high"])) for row in rows}


def run(input: Input) -> Output:
    table = ranges(input.path, input.sex)
    flags = {test: table[test].flag(value) for test, value in input.results.items() if test in table}
    return Output(
        flags=flags,
        abnormal=sum(bool(flag) for flag in flags.values()),
        without_range=sorted(set(input.results) - set(table)),
    )
