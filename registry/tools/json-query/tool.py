"""Takes a part out of a JSON file."""

import json
import math
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field

TOOL = {
    "name": "json_query",
    "description": "Read the part of a JSON file that a dotted path leads to, such as servers.0.name",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="The JSON file, in the workspace")
    query: str = Field("", description="Keys and list positions joined by dots; empty for the whole")


class Output(BaseModel):
    value: Any
    kind: str = Field(description="object, array, string, number, boolean or null")


def run(input: Input) -> Output:
    """A position may be negative: -1 is the last. Raises LookupError with the part that is missing.

    What JSON has no number for (NaN, 1e999) is given as the text that stands there.
    """
    text = Path(input.path).read_text(encoding="utf-8-sig")
    value = json.loads(text, parse_constant=str, parse_float=number)
    walked: list[str] = []
    for key in input.query.split(".") if input.query else []:
        walked.append(key)
        try:
            value = value[int(key)] if isinstance(value, list) else value[key]
        except (LookupError, TypeError, ValueError):
            raise LookupError(f"{input.path} has nothing at '{'.'.join(walked)}'") from None
    return Output(value=value, kind=kind_of(value))


def kind_of(value: Any) -> str:
    """JSON's name for the type."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    names = {dict: "object", list: "array", str: "string", int: "number", float: "number"}
    return names[type(value)]


def number(text: str) -> float | str:
    """The number, or the text of one that is too large."""
    found = float(text)
    return found if math.isfinite(found) else text
