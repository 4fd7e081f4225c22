"""Settings from several files."""

import json
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field

TOOL = {
    "name": "settings_merge",
    "description": "Settings from several JSON files, the later over the earlier; null takes a setting out",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    paths: list[str] = Field(description="JSON files, the weakest first")


class Output(BaseModel):
    settings: dict[str, Any]
    changed: list[str]


def merge(base: dict[str, Any], extra: dict[str, Any]) -> dict[str, Any]:
    """The settings of both; those of extra win."""
    merged = dict(base)
    for key, value in extra.items():
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, dict) and isinstance(merged.get(key), dict):
            merged[key] = merge(merged[key], value)
        else:
            merged[key] = value
    return merged


def flat(settings: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Each setting by its dotted name."""
    found = {}
    for key, value in settings.items():
        if isinstance(value, dict) and value:
            found.update(flat(value, f"{prefix}{key}."))
        else:
            found[prefix + key] = value
    return found


def run(input: Input) -> Output:
    layers = [json.loads(Path(path).read_text(encoding="utf-8")) for path in input.paths]
    settings: dict[str, Any] = {}
    for layer in layers:
        settings = merge(settings, layer)
    before, after = flat(layers[0]), flat(settings)
    changed = sorted(key for key in before if key not in after or after[key] != before[key])
    return Output(settings=settings, changed=changed)
