"""Entries of a family register by their dates."""

from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "register_dates",
    "description": "Sort the entries of a family's register by dates such as 12 MAR 1850, ABT 1850 or BEF JUN 1849",
    "effects": ["read"],
    "dependencies": [],
}

MONTHS = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"]
WORDS = {"BEF": -1, "ABT": 0, "EST": 0, "AFT": 1}


class Input(BaseModel):
    path: str = Field(description="Lines: date; event. A missing month or day counts as before the first")


class Output(BaseModel):
    events: list[str]
    undated: list[str]
    exact: int = Field(description="Entries with a day")


def key(date: str) -> tuple[int, int, int, int] | None:
    """Year, month, day, and -1 or 1 for what was before or after that date."""
    words = date.upper().split()
    side = WORDS[words.pop(0)] if words and words[0] in WORDS else 0
    if not words or not words[-1].isdigit():
        return None
    year = int(words.pop())
    month = MONTHS.index(words.pop()) + 1 if words else 13
    day = int(words.pop()) if words else 0
    return year, month, day, side


def run(input: Input) -> Output:
    dated, undated = [], []
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if ";" not in line:
            continue
        date, event = (part.strip() for part in line.split(";", 1))
        found = key(date)
        if found is None:
            undated.append(event)
        else:
            dated.append((found, event))
    dated.sort(key=lambda entry: entry[0])
    return Output(events=[event for _, event in dated], undated=undated, exact=sum(found[2] > 0 for found, _ in dated))
