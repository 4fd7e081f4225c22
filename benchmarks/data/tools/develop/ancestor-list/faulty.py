"""Who a person descends from."""

from collections import deque
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "ancestor_list",
    "description": "Ancestors of a person, nearest first",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="Lines of the form: child < parent, or child < parent, parent")
    person: str


class Output(BaseModel):
    ancestors: list[str]
    generations: int


def read(path: str) -> dict[str, list[str]]:
    parents: dict[str, list[str]] = {}
    for line in Path(path).read_text(encoding="utf-8").splitlines():
        child, sep, names = line.partition("<")
        if sep:
            parents[child.strip()] = [name.strip() for name in names.split(",")]
    return parents


def run(input: Input) -> Output:
    """Generation after generation, within one by name; each person once, where first met."""
    parents = read(input.path)
    depth = {input.person: 0}
    queue = deque([input.person])
    while queue:
        current = queue.popleft()
        for parent in parents.get(current, [])[:1]:
            if parent not in depth:
                depth[parent] = depth[current] + 1
                queue.append(parent)
    found = sorted((level, name) for name, level in depth.items() if level)
    return Output(ancestors=[name for _, name in found], generations=max(depth.values()))
