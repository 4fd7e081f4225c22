"""Rain at a weather station."""

import csv
from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "dry_spell",
    "description": "Longest dry spell and rain sum of a station",
    "effects": ["read"],
    "dependencies": [],
}

TRACE = 0.05  # what the station writes as "trace"


class Input(BaseModel):
    path: str


class Output(BaseModel):
    rain_mm: float
    longest_dry: int
    windiest_day: int


def amount(cell: str) -> float:
    return TRACE if cell == "trace" else float(cell)


def longest_run(flags: list[bool]) -> int:
    """Length of the longest unbroken series of true values."""
    best = current = 0
    for flag in flags:
        if flag:
            current += 1
        else:
            best = max(best, current)
            current = 0
    return best


def run(input: Input) -> Output:
    with Path(input.path).open(newline="", encoding="utf-8") as handle:
        rows = list(csv.DictReader(handle))
    rain = [amount(row["rain_mm"]) for row in rows]
    windiest = max(rows, key=lambda row: int(row["wind_kmh"]))
    return Output(
        rain_mm=round(sum(rain), 2),
        longest_dry=longest_run([value == 0 for value in rain]),
        windiest_day=int(windiest["day"]),
    )
