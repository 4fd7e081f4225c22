"""Numbers for the titles of an outline."""

import json
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field

TOOL = {
    "name": "outline_depth",
    "description": "The titles of an outline in JSON with their numbers, such as 2.1.3, and its depth",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="JSON: a list of objects with title and, where there are any, children")
    deepest: int = Field(9, description="Levels that are listed")


class Output(BaseModel):
    titles: list[str]
    depth: int


def number(nodes: list[dict[str, Any]], above: str = "") -> list[tuple[int, str]]:
    """Level and numbered title of each node; what has no title is left out with all below it, and has no number."""
    found: list[tuple[int, str]] = []
    place = 0
    for node in nodes:
        if not node.get("title"):
            continue
        place += 1
        here = f"{above}{place}"
        found.append((here.count(".") + 1, f"{here} {node['title']}"))
        found += number(node.get("children", []), f"{here}.")
    return found


def run(input: Input) -> Output:
    nodes = json.loads(Path(input.path).read_text(encoding="utf-8"))
    found = number(nodes)
    titles = [title for level, title in found if level <= input.deepest]
    return Output(titles=titles, depth=max((level for level, _ in found), default=0))
