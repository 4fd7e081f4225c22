"""Checks a list of part numbers."""

import re
from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "part_numbers",
    "description": "Which entries of a list are part numbers (two or three capitals, a hyphen, four digits, and perhaps a hyphen and a capital for the variant), how many each series has, and which entries are none",
    "effects": ["read"],
    "dependencies": [],
}

NUMBER = re.compile(r"([A-Z]{2,3})-(\d{4})(-[A-Z])?")


class Input(BaseModel):
    path: str


class Output(BaseModel):
    parts: list[str]
    series: dict[str, int]
    variants: int
    wrong: list[str]


def run(input: Input) -> Output:
    """One entry on each line; what was listed before counts once."""
    parts: list[str] = []
    series: dict[str, int] = {}
    variants = 0
    wrong = []
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        entry = line.strip()
        if not entry or entry in parts:
            continue
        found = NUMBER.fullmatch(entry)
        if found is None:
            wrong.append(entry)
            continue
        parts.append(entry)
        series[found[1]] = series.get(found[1], 0) + 1
        if found[3]:
            variants += 1
    return Output(parts=parts, series=series, variants=variants, wrong=wrong)
