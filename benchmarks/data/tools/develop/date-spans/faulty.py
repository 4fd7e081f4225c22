"""Days put together to spans."""

from datetime import date
from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "date_spans",
    "description": "Puts single days together to spans of days that follow each other, such as 2026-01-03..2026-01-05, and says how long the longest is",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str


class Output(BaseModel):
    spans: list[str]
    days: int
    longest: int


def run(input: Input) -> Output:
    """A date on each line, in any order and maybe twice; a single day stands alone."""
    text = Path(input.path).read_text(encoding="utf-8")
    days = sorted({date.fromisoformat(line.strip()) for line in text.splitlines() if line.strip()})
    runs: list[list[date]] = []
    for day in days:
        if runs and day.day == runs[-1][-1].day + 1:
            runs[-1].append(day)
        else:
            runs.append([day])
    spans = [
        str(span[0]) if len(span) == 1 else f"{span[0]}..{span[-1]}"
        for span in runs
    ]
    return Output(spans=spans, days=len(days), longest=max(map(len, runs), default=0))
