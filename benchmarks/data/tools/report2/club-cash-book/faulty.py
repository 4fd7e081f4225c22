"""The balances of a cash book."""

from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "club_cash_book",
    "description": "The balance of a club's cash book after each entry, in euros with two digits after the point, the lowest of them and the sum of each purpose; what is overdrawn has a minus",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="Lines of the form: date, in or out, euros and purpose, with tabs between them")
    opening_cents: int = Field(0, description="What was in the box before")


class Output(BaseModel):
    balances: list[str]
    lowest: str
    purposes: dict[str, str]


def cents(text: str) -> int:
    whole, _, part = text.partition(".")
    return int(whole) * 100 + int(part.ljust(2, "0") or 0)


def euros(amount: int) -> str:
    return f"{amount // 100}.{amount % 100:02d}"


class Book:
    def __init__(self, opening: int) -> None:
        self.balance = opening
        self.balances: list[int] = []
        self.purposes: dict[str, int] = {}

    def enter(self, kind: str, amount: int, purpose: str) -> None:
        moved = amount if kind == "in" else -amount
        self.balance += moved
        self.balances.append(self.balance)
        self.purposes[purpose] = self.purposes.get(purpose, 0) + moved


def run(input: Input) -> Output:
    book = Book(input.opening_cents)
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        _, kind, amount, purpose = line.split("\t")
        book.enter(kind, cents(amount), purpose)
    lowest = min([input.opening_cents, *book.balances])
    sums = {purpose: euros(amount) for purpose, amount in sorted(book.purposes.items())}
    return Output(balances=[euros(amount) for amount in book.balances], lowest=euros(lowest), purposes=sums)
