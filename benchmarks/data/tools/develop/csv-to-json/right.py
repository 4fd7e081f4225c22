"""Writes the rows of a CSV file as JSON."""

import csv
import json
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "csv_to_json",
    "description": "Turn a CSV file into a JSON file",
    "effects": ["read", "write"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="CSV with a line of headings")
    out: str = Field(description="JSON file to write: a list of objects, price as number")


class Output(BaseModel):
    rows: int
    columns: list[str]


def table(path: str) -> list[list[str]]:
    """Cells by row, the headings first."""
    with Path(path).open(newline="", encoding="utf-8") as handle:
        return [row for row in csv.reader(handle) if row]


def run(input: Input) -> Output:
    head, *rows = table(input.path)
    documents = []
    for row in rows:
        document: dict[str, object] = dict(zip(head, row))
        if "price" in document:
            document["price"] = float(document["price"])
        documents.append(document)
    Path(input.out).write_text(json.dumps(documents, indent=1), encoding="utf-8")
    return Output(rows=len(documents), columns=head)
