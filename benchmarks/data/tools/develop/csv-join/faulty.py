"""A join of two tables."""

import csv
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "csv_join",
    "description": "Joins two CSV files by a column and writes joined.csv; rows without a partner are kept if wished",
    "effects": ["read", "write"],
    "dependencies": [],
}

TARGET = "joined.csv"


class Input(BaseModel):
    left: str
    right: str
    key: str = Field(description="Column that both have")
    keep: bool = Field(False, description="Whether rows of the left one without a partner are written too")


class Output(BaseModel):
    columns: list[str]
    rows: int
    alone: list[str] = Field(description="Keys of the left file without a partner")


def read(path: str) -> tuple[list[str], list[dict[str, str]]]:
    with Path(path).open(newline="", encoding="utf-8") as handle:
        reader = csv.DictReader(handle)
        return list(reader.fieldnames or []), list(reader)


def run(input: Input) -> Output:
    columns, rows = read(input.left)
    others, partners = read(input.right)
    columns += [name for name in others if name not in columns]
    index = {row[input.key]: row for row in partners}
    joined: list[dict[str, str]] = []
    alone: list[str] = []
    for row in rows:
        match = index.get(row[input.key])
        if match:
            joined.append({**match, **row})
        else:
            alone.append(row[input.key])
            if input.keep:
                joined.append(row)
    with Path(TARGET).open("w", newline="", encoding="utf-8") as handle:
        writer = csv.DictWriter(handle, columns, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(joined)
    return Output(columns=columns, rows=len(joined), alone=sorted(set(alone)))
