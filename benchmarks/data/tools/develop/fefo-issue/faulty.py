"""First expired, first out."""

from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "fefo_issue",
    "description": "Issues goods for orders from lots, those that expire first being taken first; a lot may still go out on its last day, and an order that cannot be filled wholly gets nothing",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    lots: str
    orders: str
    day: str


class Output(BaseModel):
    picks: list[str]
    unfilled: list[str]
    left: dict[str, int]


def rows(path: str) -> list[list[str]]:
    text = Path(path).read_text(encoding="utf-8")
    return [[cell.strip() for cell in line.split(",")] for line in text.splitlines() if line.strip()]


def run(input: Input) -> Output:
    """Lots: article, lot, last day, pieces. Orders: article, pieces."""
    lots = [row for row in rows(input.lots) if row[2] >= input.day]
    lots.sort(key=lambda row: (row[2], row[1]))
    left = {row[1]: int(row[3]) for row in lots}
    picks = []
    unfilled = []
    for article, text in rows(input.orders):
        wanted = int(text)
        fitting = [row[1] for row in lots if row[0] == article]
        for lot in fitting:
            taken = min(left[lot], wanted)
            if taken:
                picks.append(f"{article} {lot} {taken}")
            left[lot] -= taken
            wanted -= taken
        if wanted:
            unfilled.append(f"{article} {text}")
    return Output(picks=picks, unfilled=unfilled, left=left)
