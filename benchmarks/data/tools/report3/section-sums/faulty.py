"""Subtotals of sections."""

from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "section_sums",
    "description": "Subtotals of the sections of a list, where each section ends with a line of dashes, and their largest entry",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="Lines that end with a number; a section ends with a line of three or more dashes")


class Output(BaseModel):
    subtotals: list[int]
    largest: list[int]
    total: int


def run(input: Input) -> Output:
    subtotals: list[int] = []
    largest: list[int] = []
    running = 0
    top = 0
    open_section = False
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if line.startswith("---"):
            subtotals.append(running)
            largest.append(top)
            running = 0
            open_section = False
            continue
        words = line.split()
        if not words or not words[-1].isdigit():
            continue
        value = int(words[-1])
        running += value
        top = max(top, value)
        open_section = True
    if open_section:
        subtotals.append(running)
        largest.append(top)
    return Output(subtotals=subtotals, largest=largest, total=sum(subtotals))
