"""A configuration with the settings of another laid over it."""

import json
from pathlib import Path
from typing import Any

from pydantic import BaseModel

TOOL = {
    "name": "config_merge",
    "description": "Merge two JSON configurations",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    base: str
    override: str


class Output(BaseModel):
    merged: dict[str, Any]
    changed: list[str]


def merge(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    """Tables are merged at every depth; null removes a key; anything else replaces."""
    result = dict(base)
    for key, value in over.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, dict) and isinstance(result.get(key), dict):
            result[key] = merge(result[key], value)
        else:
            result[key] = value
    return result


def load(path: str) -> dict[str, Any]:
    return json.loads(Path(path).read_text(encoding="utf-8"))


def run(input: Input) -> Output:
    base = load(input.base)
    merged = merge(base, load(input.override))
    keys = sorted(set(base) | set(merged))
    return Output(merged=merged, changed=[key for key in keys if base.get(key) != merged.get(key)])
