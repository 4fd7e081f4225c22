"""What was written about tickets."""

import csv
from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "ticket_comments",
    "description": "How many comments, lines and words were written about each ticket, from a table (CSV) whose comments may run over several lines in quotes, the longest line of a comment, and the authors with the number of their comments",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str


class Ticket(BaseModel):
    ticket: str
    comments: int = 0
    lines: int = 0
    words: int = 0


class Output(BaseModel):
    tickets: list[Ticket]
    longest: str
    authors: dict[str, int]


def run(input: Input) -> Output:
    """The tickets come in the order of the table."""
    with Path(input.path).open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file.read().splitlines()))
    tickets: dict[str, Ticket] = {}
    authors: dict[str, int] = {}
    longest = ""
    for row in rows:
        ticket = tickets.setdefault(row["ticket"], Ticket(ticket=row["ticket"]))
        lines = row["comment"].split("\n")
        ticket.comments += 1
        ticket.lines += len(lines)
        ticket.words += len(row["comment"].split())
        longest = max(longest, *lines, key=len)
        authors[row["author"]] = authors.get(row["author"], 0) + 1
    return Output(tickets=list(tickets.values()), longest=longest, authors=authors)
