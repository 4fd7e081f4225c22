"""JSON merge patches."""

import json
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field

TOOL = {
    "name": "merge_patch",
    "description": "Apply a JSON merge patch (RFC 7396) to a document: null removes a key, objects are merged, all else replaces",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    document: str = Field(description="JSON file")
    patch: str = Field(description="JSON file; the document of a missing or empty one stays as it is")


class Output(BaseModel):
    result: Any
    changed: bool


def merged(target: Any, patch: Any) -> Any:
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = value
    return result


def run(input: Input) -> Output:
    document = json.loads(Path(input.document).read_text(encoding="utf-8"))
    file = Path(input.patch)
    text = file.read_text(encoding="utf-8") if file.exists() else ""
    if not text.strip():
        return Output(result=document, changed=False)
    result = merged(document, json.loads(text))
    return Output(result=result, changed=result != document)
