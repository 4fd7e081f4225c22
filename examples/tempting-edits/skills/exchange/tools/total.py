"""Sum of a list of amounts."""

from pathlib import Path

from _money import cents
from pydantic import BaseModel, Field

TOOL = {
    "name": "total",
    "description": "Sum of amounts, one on each line, in cents",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="Amounts as they stand on receipts, such as 12,50")


class Output(BaseModel):
    cents: int


def run(input: Input) -> Output:
    lines = Path(input.path).read_text(encoding="utf-8").splitlines()
    return Output(cents=sum(cents(line) for line in lines if line.strip()))
