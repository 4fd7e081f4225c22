"""Bookings from an old machine."""

from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "host_records",
    "description": "The sums of accounts in the lines of an old accounting machine: the account in columns 1 to 6, the day in 7 to 12 (yymmdd), the amount in cents in 13 to 21, with its sign behind it where it is below zero, and the text from column 22 on",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str
    account: str | None = None


class Output(BaseModel):
    sums: dict[str, int]
    last_day: str | None
    texts: list[str]


def cents(field: str) -> int:
    """The digits may be filled up with zeros or spaces, before the number."""
    return int(field.strip() or "0")


def run(input: Input) -> Output:
    """Of one account only, where it is given; the texts of amounts of 0 are left out. The years are those after 2000."""
    sums: dict[str, int] = {}
    days = []
    texts = []
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if not line.strip():
            continue
        account = line[:6].strip()
        if input.account is not None and account != input.account:
            continue
        amount = cents(line[12:21])
        sums[account] = sums.get(account, 0) + amount
        days.append(f"20{line[6:8]}-{line[8:10]}-{line[10:12]}")
        if amount:
            texts.append(line[21:].strip())
    return Output(sums=sums, last_day=max(days, default=None), texts=texts)
