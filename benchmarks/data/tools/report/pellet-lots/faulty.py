"""Costs of pellets that are taken out of a store."""

from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "pellet_lots",
    "description": "What the pellets cost that a heating takes out of its store, for each time, where the oldest lot is used up before the next one is begun; the lots that are left with their prices, and the kilograms that were wanted when the store was empty",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="Lines by time of the form: in;kilograms;cents for each, or: out;kilograms")


class Lot(BaseModel):
    kilograms: int
    cents: int


class Output(BaseModel):
    costs: list[int]
    left: list[str]
    missing: int


def moves(path: str) -> list[list[str]]:
    lines = Path(path).read_text(encoding="utf-8").splitlines()
    return [[part.strip() for part in line.split(";")] for line in lines if line.strip()]


def take(lots: list[Lot], wanted: int) -> tuple[int, int]:
    """What the pellets cost, and how many kilograms there were too few."""
    cost = 0
    while wanted > 0 and lots:
        lot = lots.pop(0)
        taken = min(lot.kilograms, wanted)
        cost += taken * lot.cents
        wanted -= taken
    return cost, wanted


def run(input: Input) -> Output:
    lots: list[Lot] = []
    costs, missing = [], 0
    for kind, *numbers in moves(input.path):
        if kind == "in":
            lots.append(Lot(kilograms=int(numbers[0]), cents=int(numbers[1])))
        else:
            cost, short = take(lots, int(numbers[0]))
            costs.append(cost)
            missing += short
    left = [f"{lot.kilograms} at {lot.cents}" for lot in lots]
    return Output(costs=costs, left=left, missing=missing)
