"""Reports with columns of fixed widths."""

from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "column_report",
    "description": "Read a report whose columns begin where their headings do, and sum its last column",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="Headings in the first line; lines of hyphens are passed over")


class Output(BaseModel):
    headings: list[str]
    rows: list[list[str]]
    total: float


def starts(headings: str) -> list[int]:
    """Where the words of the first line begin."""
    found = []
    for place, sign in enumerate(headings):
        if sign != " " and (place == 0 or headings[place - 1] == " "):
            found.append(place)
    return found


def cells(line: str, begins: list[int]) -> list[str]:
    ends = [*begins[1:], len(line)]
    return [line[begin:end].strip() for begin, end in zip(begins, ends)]


def run(input: Input) -> Output:
    lines = Path(input.path).read_text(encoding="utf-8").splitlines()
    if not lines:
        return Output(headings=[], rows=[], total=0.0)
    begins = starts(lines[0])
    rows = []
    for line in lines[1:]:
        if not line.strip("- "):
            continue
        rows.append(cells(line, begins))
    total = sum(float(row[-1]) for row in rows if row and row[-1])
    return Output(headings=cells(lines[0], begins), rows=rows, total=round(total, 2))
