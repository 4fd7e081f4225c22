"""Balances after movements between accounts."""

from pydantic import BaseModel, Field

TOOL = {
    "name": "transfer_fees",
    "description": "Balances after deposits, withdrawals and transfers, in cents; who sends a transfer pays its fee",
    "effects": ["read"],
    "dependencies": [],
}


class Entry(BaseModel):
    kind: str = Field(description="deposit, withdraw or transfer")
    account: str
    cents: int
    to: str | None = None


class Input(BaseModel):
    entries: list[Entry]
    fee: int = Field(0, description="of each transfer")


class Output(BaseModel):
    balances: dict[str, int]
    overdrawn: list[str]
    fees: int


class Book:
    """Balances by account."""

    def __init__(self, fee: int) -> None:
        self.fee = fee
        self.fees = 0
        self.balances: dict[str, int] = {}

    def move(self, account: str, cents: int) -> None:
        self.balances[account] = self.balances.get(account, 0) + cents

    def transfer(self, sender: str, receiver: str, cents: int) -> None:
        self.move(sender, -cents)
        self.move(receiver, cents)
        self.move(sender, -self.fee)
        self.fees += self.fee


def run(input: Input) -> Output:
    book = Book(input.fee)
    for entry in input.entries:
        if entry.kind == "deposit":
            book.move(entry.account, entry.cents)
        elif entry.kind == "withdraw":
            book.move(entry.account, -entry.cents)
        elif entry.kind == "transfer" and entry.to:
            book.transfer(entry.account, entry.to, entry.cents)
        else:
            raise ValueError(f"no such movement: {entry.kind}")
    overdrawn = sorted(name for name, cents in book.balances.items() if cents < 0)
    return Output(balances=dict(sorted(book.balances.items())), overdrawn=overdrawn, fees=book.fees)
