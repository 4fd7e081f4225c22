"""Reads a chart of accounts."""

from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "chart_accounts",
    "description": "The full name of each account of a chart, from the account at the top down to itself with colons between, in any order of the lines; the balance of each account at the top with all below it, and the account that lies deepest (the first of several)",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="Lines of the form: number;number of the account above or nothing;name;cents")


class Account(BaseModel):
    number: str
    above: str
    name: str
    cents: int


class Output(BaseModel):
    names: dict[str, str]
    totals: dict[str, int]
    deepest: str | None


def read(path: str) -> list[Account]:
    found = []
    for line in Path(path).read_text(encoding="utf-8").splitlines():
        if line.strip():
            number, above, name, cents = (part.strip() for part in line.split(";"))
            found.append(Account(number=number, above=above, name=name, cents=int(cents)))
    return found


def full_names(accounts: list[Account]) -> dict[str, list[str]]:
    names: dict[str, list[str]] = {}
    for account in accounts:
        if account.above:
            names[account.number] = [*names[account.above], account.name]
        else:
            names[account.number] = [account.name]
    return names


def run(input: Input) -> Output:
    """Accounts at the top that share a name are added up."""
    accounts = read(input.path)
    names = full_names(accounts)
    totals: dict[str, int] = {}
    for account in accounts:
        top = names[account.number][0]
        totals[top] = totals.get(top, 0) + account.cents
    return Output(
        names={number: ":".join(parts) for number, parts in names.items()},
        totals=totals,
        deepest=max(names, key=lambda number: len(names[number]), default=None),
    )
