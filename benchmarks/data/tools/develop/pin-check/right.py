"""Packages that are not pinned."""

import re
from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "pin_check",
    "description": "Compares a list of required Python packages with what is installed: which are not pinned to one version, which are missing, and which are there in another version; in names capitals, hyphens, underlines and points make no difference",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str
    installed: dict[str, str]


class Output(BaseModel):
    loose: list[str]
    missing: list[str]
    other: dict[str, str]
    unneeded: list[str]


def known_as(name: str) -> str:
    """The form in which names are compared; several such signs count as one."""
    return re.sub(r"[-_.]+", "-", name.strip()).lower()


def run(input: Input) -> Output:
    """Lines: name==version, with extras in brackets and a condition behind a semicolon, where there are any."""
    installed = {known_as(name): version for name, version in input.installed.items()}
    loose, missing = [], []
    other: dict[str, str] = {}
    required = set()
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        wanted = line.split("#")[0].split(";")[0].strip()
        if not wanted or wanted.startswith("-"):
            continue
        found = re.match(r"([\w.-]+)\s*(?:\[[^\]]*\])?\s*(?:==\s*([\w.]+)$)?", wanted)
        if found is None:
            raise ValueError(f"no package: {line!r}")
        name, version = found[1], found[2]
        required.add(known_as(name))
        if version is None:
            loose.append(name)
        if known_as(name) not in installed:
            missing.append(name)
        elif version is not None and installed[known_as(name)] != version:
            other[name] = installed[known_as(name)]
    unneeded = [name for name in input.installed if known_as(name) not in required]
    return Output(loose=loose, missing=missing, other=other, unneeded=unneeded)
