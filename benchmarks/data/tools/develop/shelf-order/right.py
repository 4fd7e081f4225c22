"""Puts books in the order of their shelf marks."""

from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "shelf_order",
    "description": "Books by class number and author mark, cut into shelves of so many books, with each shelf's range",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str
    per_shelf: int = 10


class Output(BaseModel):
    titles: list[str]
    shelves: list[str]


def key(line):
    mark, title = line.split(";", 1)
    number, _, author = mark.partition(" ")
    return (float(number), author.upper(), title)


def run(input: Input) -> Output:
    text = Path(input.path).read_text(encoding="utf-8")
    books = [line for line in text.splitlines() if ";" in line]
    books.sort(key=key)
    shelves = []
    for start in range(0, len(books), input.per_shelf):
        shelf = books[start : start + input.per_shelf]
        first, last = shelf[0].split(";")[0], shelf[-1].split(";")[0]
        shelves.append(first if first == last else f"{first} to {last}")
    return Output(titles=[line.split(";", 1)[1] for line in books], shelves=shelves)
