"""Prices that fall with the quantity."""

from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "price_breaks",
    "description": "Cost of an order by prices that fall from given quantities on, and pieces missing to the next price",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="lines `article from:price from:price`")
    order: dict[str, int]


class Line(BaseModel):
    unit: int
    cost: int
    to_next: int | None


class Output(BaseModel):
    lines: dict[str, Line]
    total: int
    unknown: list[str]


def breaks(path: str) -> dict[str, list[tuple[int, int]]]:
    table: dict[str, list[tuple[int, int]]] = {}
    for line in Path(path).read_text(encoding="utf-8").splitlines():
        words = line.split()
        if words:
            pairs = [word.split(":") for word in words[1:]]
            table[words[0]] = sorted((int(start), int(price)) for start, price in pairs)
    return table


def run(input: Input) -> Output:
    table = breaks(input.path)
    lines = {}
    for article, count in input.order.items():
        if article not in table:
            continue
        unit = table[article][0][1]
        to_next = None
        for start, price in table[article]:
            if count >= start:
                unit = price
            else:
                to_next = start - count
                break
        lines[article] = Line(unit=unit, cost=unit * count, to_next=to_next)
    return Output(
        lines=lines,
        total=sum(line.cost for line in lines.values()),
        unknown=sorted(set(input.order) - set(table)),
    )
