"""Profit of shares: those bought first are sold first."""

import csv
from collections import defaultdict, deque
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "fifo_profit",
    "description": "Profit of sold shares, first in first out",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="CSV in the order of time: symbol,side (buy or sell),count,price")


class Output(BaseModel):
    profit: dict[str, int]
    held: dict[str, int]


class Depot:
    """Lots of one share, as [count, price]."""

    def __init__(self) -> None:
        self.lots: deque[list[int]] = deque()
        self.profit = 0

    def buy(self, count: int, price: int) -> None:
        self.lots.append([count, price])

    def sell(self, count: int, price: int) -> None:
        while count:
            if not self.lots:
                raise ValueError("more was sold than was held")
            lot = self.lots[-1]
            part = min(count, lot[0])
            self.profit += part * (price - lot[1])
            lot[0] -= part
            count -= part
            if lot[0] == 0:
                self.lots.pop()

    @property
    def held(self) -> int:
        return sum(count for count, _ in self.lots)


def run(input: Input) -> Output:
    depots: dict[str, Depot] = defaultdict(Depot)
    with Path(input.path).open(newline="", encoding="utf-8") as handle:
        for row in csv.DictReader(handle):
            depot = depots[row["symbol"]]
            trade = depot.buy if row["side"] == "buy" else depot.sell
            trade(int(row["count"]), int(row["price"]))
    return Output(
        profit={symbol: depot.profit for symbol, depot in depots.items()},
        held={symbol: depot.held for symbol, depot in depots.items()},
    )
