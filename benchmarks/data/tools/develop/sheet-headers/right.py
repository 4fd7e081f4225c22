"""Names of columns."""

import csv

from pydantic import BaseModel

TOOL = {
    "name": "sheet_headers",
    "description": "Gives each column of a CSV table a name of its own: an empty one becomes column_ and its number, one that was there before gets _2, _3 and so on, with the first number that makes a name that no column has; tells the first row by these names",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str
    separator: str = ","


class Output(BaseModel):
    names: list[str]
    renamed: dict[int, str]
    first_row: dict[str, str]


def unique(heads: list[str]) -> list[str]:
    names: list[str] = []
    for head in heads:
        name = head
        number = 2
        while name in names or (name != head and name in heads):
            name = f"{head}_{number}"
            number += 1
        names.append(name)
    return names


def run(input: Input) -> Output:
    """Columns are counted from 1. A row that is too short has empty texts at its end."""
    with open(input.path, encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file, delimiter=input.separator))
    heads = [head.strip() for head in rows[0]] if rows else []
    filled = [head or f"column_{number}" for number, head in enumerate(heads, 1)]
    names = unique(filled)
    renamed = {
        number: name for number, (head, name) in enumerate(zip(heads, names, strict=True), 1) if head != name
    }
    row = rows[1] if len(rows) > 1 else []
    row = row + [""] * (len(names) - len(row))
    return Output(names=names, renamed=renamed, first_row=dict(zip(names, row, strict=False)))
