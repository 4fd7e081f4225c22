"""JSON pointers."""

import json
from pathlib import Path
from typing import Any

from pydantic import BaseModel

TOOL = {
    "name": "pointer_lookup",
    "description": "Looks up JSON pointers (RFC 6901: /a/0, ~1 for a slash and ~0 for a tilde in a name) in a document; values as JSON text, and the pointers that lead nowhere",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str
    pointers: list[str]


class Output(BaseModel):
    values: dict[str, str]
    missing: list[str]


def step(value: Any, name: str) -> Any:
    """Raises a LookupError where there is no such part."""
    if isinstance(value, dict):
        return value[name]
    if isinstance(value, list) and name.isdigit() and (name == "0" or name[0] != "0"):
        return value[int(name)]
    raise LookupError(name)


def run(input: Input) -> Output:
    """The empty pointer is the whole document."""
    document = json.loads(Path(input.path).read_text(encoding="utf-8"))
    values = {}
    missing = []
    for pointer in input.pointers:
        found = document
        try:
            for part in pointer.split("/")[1:]:
                found = step(found, part.replace("~0", "~").replace("~1", "/"))
        except LookupError:
            missing.append(pointer)
        else:
            values[pointer] = json.dumps(found, ensure_ascii=False, sort_keys=True)
    return Output(values=values, missing=missing)
