"""Sums up what the animals of a shelter cost."""

import json
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "shelter_animals",
    "description": "What the treatments of each animal of a shelter cost, the animals that had none, those that cost more than a limit, and how many animals of each kind there are",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(
        description="A JSON list of animals with a name, a kind and, where there were any, treatments (each with a cost)"
    )
    limit: float = 75


class Output(BaseModel):
    costs: dict[str, float]
    untreated: list[str]
    expensive: list[str]
    kinds: dict[str, int]


def run(input: Input) -> Output:
    """Animals in the order of the file."""
    animals = json.loads(Path(input.path).read_text(encoding="utf-8"))
    costs: dict[str, float] = {}
    untreated = []
    kinds: dict[str, int] = {}
    for animal in animals:
        name, kind = animal["name"], animal["kind"]
        kinds[kind] = kinds.get(kind, 0) + 1
        treatments = animal.get("treatments", [])
        if not treatments:
            untreated.append(name)
        costs[name] = round(sum(treatment["cost"] for treatment in treatments), 2)
    expensive = [name for name in costs if costs[name] > input.limit]
    return Output(costs=costs, untreated=untreated, expensive=expensive, kinds=kinds)
