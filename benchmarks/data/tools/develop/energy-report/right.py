"""Energy bill of a workshop."""

from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "energy_report",
    "description": "What each machine and all together cost at a price in cents for a kWh; an amount is rounded once, half a cent up, after everything in it has been added",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str
    cents: str


class Output(BaseModel):
    machines: dict[str, int]
    total: int
    readings: int


def whole(amount: Decimal) -> int:
    return int(amount.quantize(Decimal(1), ROUND_HALF_UP))


def run(input: Input) -> Output:
    """Lines: machine, kWh. In cents; the total is rounded by itself, and may differ from the sum of the machines."""
    price = Decimal(input.cents)
    costs: dict[str, Decimal] = {}
    readings = 0
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if not line.strip():
            continue
        machine, used = (cell.strip() for cell in line.split(","))
        costs[machine] = costs.get(machine, Decimal(0)) + Decimal(used) * price
        readings += 1
    return Output(
        machines={machine: whole(cost) for machine, cost in sorted(costs.items())},
        total=whole(sum(costs.values(), Decimal(0))),
        readings=readings,
    )
