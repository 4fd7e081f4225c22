"""Rights of a role."""

import json
from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "role_grants",
    "description": "What a role may do: what it and all the roles above it allow, without what any of them denies",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str
    role: str


class Output(BaseModel):
    may: list[str]
    denied: list[str]
    roles: list[str]


def run(input: Input) -> Output:
    """A JSON object: role to parents, allow and deny, each of which may be missing."""
    table = json.loads(Path(input.path).read_text(encoding="utf-8"))
    waiting = [input.role]
    seen: list[str] = []
    allowed: set[str] = set()
    denied: set[str] = set()
    while waiting:
        role = waiting.pop()
        if role in seen:
            continue
        seen.append(role)
        entry = table[role]
        allowed.update(entry.get("allow", []))
        denied.update(entry.get("deny", []))
        waiting += entry.get("parents", [])
    return Output(may=sorted(allowed - denied), denied=sorted(denied), roles=sorted(seen))
