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


def run(input: Input) -> Output:
    lines = Path(input.path).read_text(encoding="utf-8").splitlines()
    if not lines:
        return Output(headings=[], rows=[], total=0.0)
    rows = []
    for line in lines[1:]:
        if not line.strip("- "):
            continue
        rows.append(line.split())
    total = sum(float(row[-1]) for row in rows if row and row[-1])
    return Output(headings=lines[0].split(), rows=rows, total=round(total, 2))
