"""Compares two files of settings."""

import json
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field

TOOL = {
    "name": "settings_diff",
    "description": "Names that were added, removed or changed between two JSON files of settings, however deep",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    old: str
    new: str


class Output(BaseModel):
    added: list[str]
    removed: list[str]
    changed: list[str] = Field(description="Names with dots between the levels")
    equal: bool


def compare(old: dict[str, Any], new: dict[str, Any], above: str, found: dict[str, list[str]]) -> None:
    for name in sorted(old.keys() | new.keys()):
        where = f"{above}{name}"
        before, after = old.get(name), new.get(name)
        if before == after:
            continue
        if before is None:
            found["added"].append(where)
        elif after is None:
            found["removed"].append(where)
        elif isinstance(before, dict) and isinstance(after, dict):
            compare(before, after, f"{where}.", found)
        else:
            found["changed"].append(where)


def load(path: str) -> dict[str, Any]:
    text = Path(path).read_text(encoding="utf-8")
    return json.loads(text) if text.strip() else {}


def run(input: Input) -> Output:
    found: dict[str, list[str]] = {"added": [], "removed": [], "changed": []}
    compare(load(input.old), load(input.new), "", found)
    return Output(
        added=found["added"],
        removed=found["removed"],
        changed=found["changed"],
        equal=not any(found.values()),
    )
