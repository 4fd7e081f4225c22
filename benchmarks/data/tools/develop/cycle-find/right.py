"""Finds circles in the dependencies of services."""

import json
from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "cycle_find",
    "description": "Whether the dependencies of services (JSON: of each name the names that it needs) go in a circle, and the names that can reach themselves, sorted; a service that two others need is no circle",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str


class Output(BaseModel):
    circular: bool
    services: list[str]
    roots: list[str]


def in_circle(name: str, needs: dict[str, list[str]]) -> bool:
    seen: set[str] = set()
    waiting = list(needs.get(name, []))
    while waiting:
        other = waiting.pop()
        if other == name:
            return True
        if other in seen:
            continue
        seen.add(other)
        waiting += needs.get(other, [])
    return False


def run(input: Input) -> Output:
    needs = json.loads(Path(input.path).read_text(encoding="utf-8"))
    services = sorted(name for name in needs if in_circle(name, needs))
    needed = {other for others in needs.values() for other in others}
    return Output(
        circular=bool(services),
        services=services,
        roots=sorted(set(needs) - needed),
    )
