"""Settings of environments."""

import copy
from typing import Any

from pydantic import BaseModel, Field

TOOL = {
    "name": "env_layers",
    "description": "Settings of each environment: the base with its own on top, and which of them differ from the base",
    "effects": ["pure"],
    "dependencies": [],
}


class Input(BaseModel):
    base: dict[str, Any] = Field(description="Settings, in sections or plain")
    layers: dict[str, dict[str, Any]] = Field(description="What each environment sets otherwise, in this order")


class Output(BaseModel):
    settings: dict[str, dict[str, Any]]
    changed: dict[str, list[str]]


def merge(target: dict[str, Any], extra: dict[str, Any]) -> dict[str, Any]:
    """Puts ``extra`` into ``target``, section by section."""
    for key, value in extra.items():
        if isinstance(value, dict) and isinstance(target.get(key), dict):
            merge(target[key], value)
        else:
            target[key] = value
    return target


def flat(settings: dict[str, Any], before: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in settings.items():
        if isinstance(value, dict):
            found |= flat(value, f"{before}{key}.")
        else:
            found[before + key] = value
    return found


def differing(base: dict[str, Any], settings: dict[str, Any]) -> list[str]:
    own, other = flat(base), flat(settings)
    return sorted(key for key in other if key not in own or own[key] != other[key])


def run(input: Input) -> Output:
    settings, changed = {}, {}
    for name, layer in input.layers.items():
        settings[name] = merge(copy.copy(input.base), layer)
        changed[name] = differing(input.base, settings[name])
    return Output(settings=settings, changed=changed)
