"""What products are put together from."""

import json
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field

TOOL = {
    "name": "parts_of_products",
    "description": "Lists for each product of a JSON file the single parts that it is put together from, with how many of each, in the order in which they come up; assemblies may hold assemblies, and count as often as they say",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="An object of products; each has 'of', a list of parts with 'part', 'times' and maybe 'of'")


class Output(BaseModel):
    products: dict[str, list[str]]
    largest: str


def leaves(item: dict[str, Any], times: int = 1, found: list[tuple[str, int]] | None = None) -> list[tuple[str, int]]:
    """The single parts below an item, each with its number."""
    if found is None:
        found = []
    for part in item.get("of", []):
        number = times * part.get("times", 1)
        if "of" in part:
            leaves(part, number, found)
        else:
            found.append((part["part"], number))
    return found


def counted(parts: list[tuple[str, int]]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for name, number in parts:
        counts[name] = counts.get(name, 0) + number
    return counts


def run(input: Input) -> Output:
    products = json.loads(Path(input.path).read_text(encoding="utf-8"))
    counts = {name: counted(leaves(item)) for name, item in products.items()}
    largest = max(counts, key=lambda name: sum(counts[name].values()), default="")
    lines = {name: [f"{number} x {part}" for part, number in parts.items()] for name, parts in counts.items()}
    return Output(products=lines, largest=largest)
