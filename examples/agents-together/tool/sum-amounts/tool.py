"""Add up amounts, one on a line, as people write them: 1,200.50."""

from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "sum_amounts",
    "description": "Add up the amounts in a file, one on a line.",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    """Where they stand."""

    path: str


class Output(BaseModel):
    """What they come to."""

    total: float


def run(input: Input) -> Output:
    """Add them up."""
    total = 0.0
    for line in Path(input.path).read_text().splitlines():
        total += float(line.replace(",", ""))
    return Output(total=round(total, 2))
