"""Masks what is secret in a JSON document."""

import json
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field

TOOL = {
    "name": "json_redact",
    "description": "Writes a JSON document anew in which the values of the named keys, in small letters or large ones and wherever they stand, are masked as ***; and tells how many were masked",
    "effects": ["read", "write"],
    "dependencies": [],
}
MASK = "***"


class Input(BaseModel):
    path: str
    keys: list[str] = Field(min_length=1)
    out: str = "redacted.json"


class Output(BaseModel):
    masked: int
    document: Any


def redact(value: Any, keys: set[str]) -> tuple[Any, int]:
    """The value with its secrets masked, and how many there were."""
    count = 0
    if isinstance(value, list):
        items = [redact(item, keys) for item in value]
        return [item for item, _ in items], sum(found for _, found in items)
    if isinstance(value, dict):
        masked = {}
        for key, item in value.items():
            if key.lower() in keys:
                masked[key], found = MASK, 1
            else:
                masked[key], found = redact(item, keys)
            count += found
        return masked, count
    return value, count


def run(input: Input) -> Output:
    document = json.loads(Path(input.path).read_text(encoding="utf-8"))
    keys = {key.lower() for key in input.keys}
    redacted, count = redact(document, keys)
    Path(input.out).write_text(json.dumps(redacted), encoding="utf-8")
    return Output(masked=count, document=redacted)
