"""Flattens JSON: {"a": {"b": [5, 6]}} becomes a.b.0 = 5, a.b.1 = 6."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field

TOOL = {
    "name": "json_flatten",
    "description": "Flat keys of a nested JSON document",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str
    separator: str = Field(".", min_length=1)


class Output(BaseModel):
    flat: dict[str, Any]
    keys: int


def leaves(value: Any, prefix: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every value that is neither a list nor an object, with its way from the root."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from leaves(inner, (*prefix, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from leaves(inner, (*prefix, str(index)))
    else:
        yield prefix, value


def run(input: Input) -> Output:
    document = json.loads(Path(input.path).read_text(encoding="utf-8"))
    flat = {input.separator.join(way): value for way, value in leaves(document, ())}
    return Output(flat=flat, keys=len(flat))
