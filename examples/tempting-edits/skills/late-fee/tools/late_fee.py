"""Fee for a loan that came back late."""

from datetime import date
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "late_fee",
    "description": "Fee of a loan in cents",
    "effects": ["read"],
    "dependencies": [],
}

GRACE_DAYS = 7
PER_DAY = 20


class Input(BaseModel):
    path: str = Field(
        description="A file of one line: due date and date of return, such as 2026-03-01 2026-03-09"
    )


class Output(BaseModel):
    cents: int


def run(input: Input) -> Output:
    """Less than a week late is free; from the seventh day on, each day late costs."""
    due, back = (date.fromisoformat(text) for text in Path(input.path).read_text().split())
    late = (back - due).days
    if late > GRACE_DAYS:
        return Output(cents=late * PER_DAY)
    return Output(cents=0)
