"""Parameters of an interface."""

import json
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field

TOOL = {
    "name": "api_params",
    "description": "Which parameters each call of an OpenAPI document takes, those that may be left out with a question mark",
    "effects": ["read"],
    "dependencies": [],
}


METHODS = ("get", "put", "post", "delete", "patch")


class Input(BaseModel):
    path: str = Field(description="The document as JSON")


class Output(BaseModel):
    calls: dict[str, list[str]]
    needed: int = Field(description="parameters that have to be given, in all calls")


def parameters(item: dict[str, Any], operation: dict[str, Any]) -> dict[tuple[str, str], bool]:
    """Whether each parameter has to be given, by its name and where it stands."""
    found: dict[tuple[str, str], bool] = {}
    for given in [*item.get("parameters", []), *operation.get("parameters", [])]:
        found[given["name"], given["in"]] = given.get("required", False)
    return found


def run(input: Input) -> Output:
    document = json.loads(Path(input.path).read_text(encoding="utf-8"))
    calls: dict[str, list[str]] = {}
    needed = 0
    for path, item in document["paths"].items():
        for method in METHODS:
            if method in item:
                found = parameters(item, item[method])
                calls[f"{method.upper()} {path}"] = sorted(
                    name if required else f"{name}?" for (name, _), required in found.items()
                )
                needed += sum(found.values())
    return Output(calls=calls, needed=needed)
