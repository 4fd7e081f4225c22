"""Matches a bank's statement with the books."""

import csv
from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "bank_match",
    "description": "Bookings (text and amount) that only the bank's list has and those that only the books have; each booking matches one of the other list, so of three equal ones and two there one is left; sorted, and the sum of the bank's left ones less that of the books",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    bank: str
    books: str


class Output(BaseModel):
    only_bank: list[str]
    only_books: list[str]
    difference: float


Bookings = set[tuple[str, float]]


def bookings(path: str) -> Bookings:
    with Path(path).open(encoding="utf-8", newline="") as file:
        return {(row["text"].strip(), float(row["amount"])) for row in csv.DictReader(file)}


def shown(left: Bookings) -> list[str]:
    return [f"{text} {amount:.2f}" for text, amount in sorted(left)]


def run(input: Input) -> Output:
    bank, books = bookings(input.bank), bookings(input.books)
    only_bank, only_books = bank - books, books - bank
    amounts = [amount for _, amount in only_bank]
    others = [amount for _, amount in only_books]
    return Output(
        only_bank=shown(only_bank),
        only_books=shown(only_books),
        difference=round(sum(amounts) - sum(others), 2),
    )
