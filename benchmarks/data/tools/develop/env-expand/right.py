"""Fills the names in a configuration file in."""

import re
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "env_expand",
    "description": "A configuration file with its ${NAME} and ${NAME:-default} filled in from a file of values",
    "effects": ["read", "write"],
    "dependencies": [],
}

NAME = re.compile(r"\$\{(\w+)(?::-([^}]*))?\}")


class Input(BaseModel):
    path: str
    values: str = Field(description="File of lines NAME=value; # begins a remark")


class Output(BaseModel):
    written: str
    defaults: list[str] = Field(description="Names whose default was taken")
    missing: list[str] = Field(description="Names with neither a value nor a default")


def read_values(path: str) -> dict[str, str]:
    values = {}
    for line in Path(path).read_text(encoding="utf-8").splitlines():
        if "=" in line and not line.lstrip().startswith("#"):
            name, value = line.split("=", 1)
            values[name.strip()] = value.strip()
    return values


def run(input: Input) -> Output:
    values = read_values(input.values)
    defaults: set[str] = set()
    missing: set[str] = set()

    def fill(match: re.Match[str]) -> str:
        name, default = match[1], match[2]
        if default is not None and not values.get(name):
            defaults.add(name)
            return default
        if name not in values:
            missing.add(name)
        return values.get(name, "")

    target = Path(input.path).with_suffix(".out")
    target.write_text(NAME.sub(fill, Path(input.path).read_text(encoding="utf-8")), encoding="utf-8")
    return Output(written=target.name, defaults=sorted(defaults), missing=sorted(missing))
