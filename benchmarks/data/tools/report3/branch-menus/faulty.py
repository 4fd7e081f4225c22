"""Menus of the branches of a restaurant."""

import json
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field

TOOL = {
    "name": "branch_menus",
    "description": "Prices of a menu in each branch: the common menu with what the branch changes in it, section by section",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="JSON with menu (section, dish, price) and branches (branch, section, dish, price)")


class Output(BaseModel):
    dishes: dict[str, int]
    dearest: dict[str, str]


def menu_of(common: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """The menu with changes; a price of null takes a dish away."""
    menu = dict(common)
    for section, dishes in changes.items():
        for dish, price in dishes.items():
            if price is None:
                menu.get(section, {}).pop(dish, None)
            else:
                menu.setdefault(section, {})[dish] = price
    return menu


def run(input: Input) -> Output:
    data = json.loads(Path(input.path).read_text(encoding="utf-8"))
    count: dict[str, int] = {}
    dearest: dict[str, str] = {}
    for branch, changes in data["branches"].items():
        prices = {
            dish: price
            for dishes in menu_of(data["menu"], changes).values()
            for dish, price in dishes.items()
        }
        count[branch] = len(prices)
        if prices:
            dearest[branch] = max(sorted(prices), key=prices.__getitem__)
    return Output(dishes=count, dearest=dearest)
