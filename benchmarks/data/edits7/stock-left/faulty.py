"""Stock after sales."""

import csv
import sqlite3
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "stock_left",
    "description": "What is left of each item after the sales of a day",
    "effects": ["read"],
    "dependencies": [],
}


QUERY = """
    SELECT items.sku, items.stock - SUM(sales.pieces)
    FROM items JOIN sales ON sales.sku = items.sku
    GROUP BY items.sku
    ORDER BY items.sku
"""


class Input(BaseModel):
    items: str = Field(description="CSV with the columns sku and stock")
    sales: str = Field(description="CSV with the columns sku and pieces")


class Output(BaseModel):
    left: dict[str, int]
    pieces: int


def rows_of(path: str, column: str) -> list[tuple[str, int]]:
    with Path(path).open(encoding="utf-8", newline="") as file:
        return [(row["sku"].strip(), int(row[column])) for row in csv.DictReader(file)]


def run(input: Input) -> Output:
    base = sqlite3.connect(":memory:")
    base.execute("CREATE TABLE items (sku TEXT PRIMARY KEY, stock INTEGER)")
    base.execute("CREATE TABLE sales (sku TEXT, pieces INTEGER)")
    base.executemany("INSERT INTO items VALUES (?, ?)", rows_of(input.items, "stock"))
    base.executemany("INSERT INTO sales VALUES (?, ?)", rows_of(input.sales, "pieces"))
    left: dict[str, int] = {}
    for sku, rest in base.execute(QUERY):
        left[sku] = rest
    base.close()
    return Output(left=left, pieces=sum(left.values()))
