"""Sums of accounts within accounts."""

from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "ledger_tree",
    "description": "The sums of a ledger's accounts and of all accounts above them (assets:bank:giro counts for assets:bank and assets too), to a given depth",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str
    depth: int = 9


class Output(BaseModel):
    totals: dict[str, int]
    direct: dict[str, int]
    report: list[str]


def run(input: Input) -> Output:
    """Lines: account, spaces, amount. Deeper accounts are indented by two spaces in the report."""
    totals: dict[str, int] = {}
    direct: dict[str, int] = {}
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if not line.strip():
            continue
        account, text = line.rsplit(None, 1)
        account = account.strip()
        amount = int(text)
        direct[account] = direct.get(account, 0) + amount
        totals[account] = totals.get(account, 0) + amount
        above = account.rpartition(":")[0]
        if above:
            totals[above] = totals.get(above, 0) + amount
    report = []
    shown = {}
    for account in sorted(totals, key=lambda name: name.split(":")):
        level = account.count(":")
        if level < input.depth:
            shown[account] = totals[account]
            report.append("  " * level + f"{account.split(':')[-1]} {totals[account]}")
    return Output(totals=shown, direct=dict(sorted(direct.items())), report=report)
