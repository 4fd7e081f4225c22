"""Which articles of a stock list have to be ordered again."""

import csv
from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "reorder",
    "description": "Articles of a stock list in CSV that have to be ordered again",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    stock: str


class Output(BaseModel):
    articles: int
    reorder: list[str]


def run(input: Input) -> Output:
    with Path(input.stock).open(newline="", encoding="utf-8") as handle:
        rows = list(csv.DictReader(handle))
    short = []
    for row in rows:
        quantity = int(row["quantity"])
        minimum = int(row["minimum"])
        if quantity < minimum:
            short.append(row["article"])
    return Output(articles=len(rows), reorder=sorted(short))
