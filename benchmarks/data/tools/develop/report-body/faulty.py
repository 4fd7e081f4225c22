"""The entries of a bank's export."""

from decimal import Decimal
from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "report_body",
    "description": "The entries of a bank's export without its first and last lines, of which each bank has another number (or none): how many there are, their sum and the money in and out in cents, the first and the last day, and the sum for each text",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str
    head: int = 1
    foot: int = 0


class Output(BaseModel):
    entries: int
    money_in: int
    money_out: int
    first: str
    last: str
    texts: dict[str, int]


def run(input: Input) -> Output:
    """Lines: day;text;amount, after ``head`` lines and before ``foot`` lines that are none."""
    lines = Path(input.path).read_text(encoding="utf-8").splitlines()
    body = lines[input.head : -input.foot]
    days = []
    texts: dict[str, int] = {}
    money_in = money_out = 0
    for line in body:
        day, text, amount = line.split(";")
        cents = int(Decimal(amount) * 100)
        days.append(day)
        texts[text] = texts.get(text, 0) + cents
        if cents > 0:
            money_in += cents
        else:
            money_out -= cents
    return Output(
        entries=len(body),
        money_in=money_in,
        money_out=money_out,
        first=min(days, default=""),
        last=max(days, default=""),
        texts=texts,
    )
