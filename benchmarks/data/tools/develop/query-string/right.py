"""Parameters of web addresses."""

import re
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "query_string",
    "description": "The parameters of web addresses, decoded",
    "effects": ["read"],
    "dependencies": [],
}

ESCAPE = re.compile(rb"%([0-9A-Fa-f]{2})")


class Input(BaseModel):
    path: str = Field(description="Addresses, one a line")
    only: str | None = Field(None, description="The name of the only parameter that is wanted")


class Output(BaseModel):
    parameters: dict[str, list[str]]
    without: int = Field(description="Addresses without any parameter")


def unquote(text: str) -> str:
    """The signs for %41 and the like; those of several bytes are UTF-8."""
    return ESCAPE.sub(lambda found: bytes([int(found[1], 16)]), text.encode()).decode(errors="replace")


def decoded(text: str) -> str:
    return unquote(text.replace("+", " "))


def pairs(address: str) -> list[tuple[str, str]]:
    """Names and values; a name without = has an empty value."""
    query = address.split("#")[0].partition("?")[2]
    found = []
    for part in query.split("&"):
        if part:
            name, _, value = part.partition("=")
            found.append((decoded(name), decoded(value)))
    return found


def run(input: Input) -> Output:
    parameters: dict[str, list[str]] = {}
    without = 0
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if not line.strip():
            continue
        found = pairs(line.strip())
        without += not found
        for name, value in found:
            if input.only is None or name == input.only:
                parameters.setdefault(name, []).append(value)
    return Output(parameters=parameters, without=without)
