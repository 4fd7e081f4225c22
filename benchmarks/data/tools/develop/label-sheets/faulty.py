"""Lays labels out on sheets."""

import re
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "label_sheets",
    "description": "How labels are printed on sheets that hold a given number of them: what is on each sheet, how many sheets are needed, and how many places of the last one stay free",
    "effects": ["read"],
    "dependencies": [],
}

COPIES = re.compile(r"(.*\S)\s+x(\d+)")


class Input(BaseModel):
    path: str = Field(description="A label on each line, with its number of copies where there are several: Ann Lee x3")
    per_sheet: int = Field(24, ge=1)


class Output(BaseModel):
    sheets: list[list[str]]
    count: int
    free: int


def run(input: Input) -> Output:
    labels: list[str] = []
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        text = line.strip()
        if not text:
            continue
        found = COPIES.fullmatch(text)
        if found:
            labels += [found[1]] * int(found[2])
        else:
            labels.append(text)
    count = len(labels) // input.per_sheet
    sheets = []
    for number in range(count):
        first = number * input.per_sheet
        sheets.append(labels[first : first + input.per_sheet])
    free = input.per_sheet - len(sheets[-1]) if sheets else 0
    return Output(sheets=sheets, count=count, free=free)
