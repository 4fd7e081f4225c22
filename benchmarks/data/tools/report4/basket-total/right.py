"""Total of a shopping basket."""

import json
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field

TOOL = {
    "name": "basket_total",
    "description": "Total of a shopping basket in cents; an item without a quantity is one piece",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="JSON with items: sku, price in cents, perhaps qty and gift")
    wrap: int = Field(150, description="Cents for wrapping one gift")


class Output(BaseModel):
    cents: int
    pieces: int
    lines: int


def cost(item: dict[str, Any], wrap: int) -> int:
    """Cents of one line; every piece of a gift is wrapped."""
    pieces = item.get("qty", 1)
    each = item["price"] + (wrap if item.get("gift", False) else 0)
    return pieces * each


def run(input: Input) -> Output:
    items = json.loads(Path(input.path).read_text(encoding="utf-8"))["items"]
    return Output(
        cents=sum(cost(item, input.wrap) for item in items),
        pieces=sum(item.get("qty", 1) for item in items),
        lines=len(items),
    )
