"""Changes between two JSON documents."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field

TOOL = {
    "name": "json_changes",
    "description": "Changed, added and removed values between two JSON documents, by their paths such as $.items[2].name",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    old: str = Field(description="The older document")
    new: str = Field(description="The newer document")
    ignore: list[str] = Field(default=[], description="Keys that are left out wherever they stand")


class Change(BaseModel):
    path: str
    kind: str
    value: object


class Output(BaseModel):
    changes: list[Change]
    counts: dict[str, int]


def compare(old: Any, new: Any, path: str, ignore: list[str]) -> Iterator[Change]:
    """Changes in the order of the older document, then what only the newer one has."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key, value in old.items():
            if key in ignore:
                continue
            if key in new:
                yield from compare(value, new[key], f"{path}.{key}", ignore)
            else:
                yield Change(path=f"{path}.{key}", kind="removed", value=value)
        for key, value in new.items():
            if key not in old and key not in ignore:
                yield Change(path=f"{path}.{key}", kind="added", value=value)
    elif isinstance(old, list) and isinstance(new, list):
        for number, (before, after) in enumerate(zip(old, new, strict=False)):
            yield from compare(before, after, f"{path}[{number}]", ignore)
    elif old != new or type(old) is not type(new):
        yield Change(path=path, kind="changed", value=new)


def run(input: Input) -> Output:
    old = json.loads(Path(input.old).read_text(encoding="utf-8"))
    new = json.loads(Path(input.new).read_text(encoding="utf-8"))
    changes = list(compare(old, new, "$", input.ignore))
    counts: dict[str, int] = {}
    for change in changes:
        counts[change.kind] = counts.get(change.kind, 0) + 1
    return Output(changes=changes, counts=counts)
