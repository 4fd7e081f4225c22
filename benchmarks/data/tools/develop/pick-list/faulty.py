"""What a picker has to fetch, in the order of the places in the warehouse."""

import json
from collections import Counter
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "pick_list",
    "description": "Pick list sorted by place",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="JSON list of lines with sku (aisle-place) and count")


class Output(BaseModel):
    lines: list[str]
    pieces: int


def place(sku: str) -> tuple[str, str]:
    """Aisle and number, to sort by."""
    aisle, number = sku.split("-")
    return aisle, number


def collect(orders: list[dict]) -> Counter[str]:
    wanted: Counter[str] = Counter()
    for line in orders:
        wanted[line["sku"]] += line["count"]
    return wanted


def run(input: Input) -> Output:
    wanted = collect(json.loads(Path(input.path).read_text(encoding="utf-8")))
    lines = [f"{sku} x{wanted[sku]}" for sku in sorted(wanted, key=place)]
    return Output(lines=lines, pieces=sum(wanted.values()))
