"""Rows as SQL."""

import csv
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "sql_inserts",
    "description": "The INSERT statements for the rows of a CSV file; whole numbers stay numbers, an empty cell is NULL",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str
    table: str = Field("items", pattern=r"^[a-z_]+$")


class Output(BaseModel):
    statements: list[str]
    nulls: int


def literal(text: str) -> str:
    """A cell as SQL writes it."""
    if not text:
        return "NULL"
    if text.isdecimal() and text.isascii():
        return text
    escaped = text.replace("'", "''")
    return f"'{escaped}'"


def run(input: Input) -> Output:
    statements: list[str] = []
    nulls = 0
    with Path(input.path).open(encoding="utf-8", newline="") as file:
        reader = csv.reader(file)
        columns = ", ".join(next(reader))
        for row in reader:
            values = [literal(cell) for cell in row]
            nulls += values.count("NULL")
            statements.append(f"INSERT INTO {input.table} ({columns}) VALUES ({', '.join(values)});")
    return Output(statements=statements, nulls=nulls)
