"""Checks a journal of double entries."""

from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "journal_check",
    "description": "Entries of a journal whose amounts do not balance, and the balance of every account",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="Entries with empty lines between: a head line, then account and amount")


class Output(BaseModel):
    entries: int
    unbalanced: list[str]
    accounts: dict[str, float]


def read(path: str) -> list[tuple[str, list[tuple[str, float]]]]:
    entries: list[tuple[str, list[tuple[str, float]]]] = []
    fresh = True
    for line in Path(path).read_text(encoding="utf-8").splitlines():
        if not line.strip():
            fresh = True
        elif fresh:
            entries.append((line.strip(), []))
            fresh = False
        else:
            account, amount = line.rsplit(maxsplit=1)
            entries[-1][1].append((account.strip(), float(amount)))
    return entries


def balanced(lines: list[tuple[str, float]]) -> bool:
    return round(sum(amount for _, amount in lines), 2) == 0


def run(input: Input) -> Output:
    entries = read(input.path)
    accounts: dict[str, float] = {}
    for _, lines in entries:
        for account, amount in lines:
            accounts[account] = round(accounts.get(account, 0) + amount, 2)
    return Output(
        entries=len(entries),
        unbalanced=[head for head, lines in entries if not balanced(lines)],
        accounts=dict(sorted(accounts.items())),
    )
