"""Settings of a .properties file."""

import re
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "java_properties",
    "description": "The settings of a .properties file, those below a prefix, and the keys that occur twice",
    "effects": ["read"],
    "dependencies": [],
}

PAIR = re.compile(r"([^=:\s]+)\s*[=:\s]?\s*(.*)")


class Input(BaseModel):
    path: str = Field(description="Lines KEY=VALUE, KEY: VALUE or KEY VALUE; notes begin with # or !")
    prefix: str = Field(default="", description="Only keys that begin so; the prefix and a dot are left out")


class Output(BaseModel):
    settings: dict[str, str]
    twice: list[str]


def logical_lines(text: str) -> list[str]:
    """Lines without notes; a line that ends with a backslash goes on with the next one."""
    found = []
    begun = ""
    for line in text.splitlines():
        line = line.strip()
        if not begun and (not line or line.startswith("#")):
            continue
        if line.endswith("\\"):
            begun += line[:-1]
            continue
        found.append(begun + line)
        begun = ""
    return [*found, begun] if begun else found


def run(input: Input) -> Output:
    settings: dict[str, str] = {}
    twice: list[str] = []
    for line in logical_lines(Path(input.path).read_text(encoding="utf-8")):
        match = PAIR.fullmatch(line)
        if not match:
            continue
        key, value = match.groups()
        if input.prefix:
            if not key.startswith(f"{input.prefix}."):
                continue
            key = key.removeprefix(f"{input.prefix}.")
        if key in settings and key not in twice:
            twice.append(key)
        settings[key] = value
    return Output(settings=settings, twice=twice)
