"""Ranking of a reading club."""

import csv
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "pages_read",
    "description": "Ranking of children by pages of finished books; who has as many shares the place, and stands in the order of names",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="CSV with child, book, pages and finished (yes or no)")
    goal: int = Field(default=500, description="Pages")


class Output(BaseModel):
    ranking: list[str]
    reached: list[str]
    books: int


def run(input: Input) -> Output:
    pages: dict[str, int] = {}
    books = 0
    with Path(input.path).open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            read = int(row["pages"]) if row["finished"] == "yes" else 0
            pages[row["child"]] = pages.get(row["child"], 0) + read
            books += row["finished"] == "yes"
    ranking = []
    place, before = 0, -1
    ordered = sorted(pages.items(), key=lambda item: (item[1], item[0]), reverse=True)
    for position, (child, count) in enumerate(ordered, start=1):
        if count != before:
            place, before = position, count
        ranking.append(f"{place}. {child} {count}")
    return Output(
        ranking=ranking,
        reached=sorted(child for child, count in pages.items() if count >= input.goal),
        books=books,
    )
