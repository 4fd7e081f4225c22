"""Deliveries against orders."""

from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "goods_received",
    "description": "What is still to come of goods that were ordered, what came beyond the order, and what was never ordered, from the lines of orders and those of deliveries; goods that were sent back have a number below zero",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    ordered: str
    received: str


class Output(BaseModel):
    open: dict[str, int]
    over: dict[str, int]
    strange: list[str]
    complete: int


def rows(path: str) -> list[list[str]]:
    """The fields of each line that is not empty."""
    lines = Path(path).read_text(encoding="utf-8").splitlines()
    return [[field.strip() for field in line.split(";")] for line in lines if line.strip()]


def run(input: Input) -> Output:
    """Ordered: order;article;number. Received: day;order;article;number."""
    wanted: dict[str, int] = {}
    for order, article, number in rows(input.ordered):
        name = f"{order}/{article}"
        wanted[name] = wanted.get(name, 0) + int(number)
    came: dict[str, int] = {}
    for _day, order, article, number in rows(input.received):
        name = f"{order}/{article}"
        came[name] = int(number)
    left = {name: number - came.get(name, 0) for name, number in wanted.items()}
    return Output(
        open={name: number for name, number in left.items() if number > 0},
        over={name: -number for name, number in left.items() if number < 0},
        strange=sorted(set(came) - set(wanted)),
        complete=sum(number <= 0 for number in left.values()),
    )
