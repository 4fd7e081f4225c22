"""Counts which dishes of a canteen are ordered most."""

from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "menu_hits",
    "description": "The dishes that were ordered most often, with their numbers, those that were ordered equally often in the order of the alphabet; the dishes that were ordered only once, in the same order; and how many dishes were served",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="Lines of the form: table: dish, dish, dish")
    best: int = Field(3, ge=1, description="So many dishes are named at most")


class Output(BaseModel):
    hits: list[str]
    once: list[str]
    served: int


def orders(path: str) -> list[str]:
    """Each dish as often as it was ordered."""
    found = []
    for line in Path(path).read_text(encoding="utf-8").splitlines():
        if line.strip():
            _, _, dishes = line.partition(":")
            found += [dish.strip() for dish in dishes.split(",")]
    return found


def run(input: Input) -> Output:
    counts: dict[str, int] = {}
    for dish in orders(input.path):
        counts[dish] = counts.get(dish, 0) + 1
    ranked = sorted(counts, key=lambda dish: (counts[dish], dish), reverse=True)
    hits = [f"{dish} ({counts[dish]})" for dish in ranked[: input.best]]
    once = sorted(dish for dish, number in counts.items() if number == 1)
    return Output(hits=hits, once=once, served=sum(counts.values()))
