"""Compares wanted packages with a lock file."""

import re
from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "lock_drift",
    "description": "Packages of a list (name==version a line, # begins a comment) that a lock file lacks, and those that it has in another version; names are equal in any case and with -, _ or . (also several) for each other, and are shown in lower case with single hyphens; versions are compared as texts",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    wanted: str
    locked: str


class Output(BaseModel):
    missing: list[str]
    different: dict[str, str]
    extra: int


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name.strip()).lower()


def pins(path: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for line in Path(path).read_text(encoding="utf-8").splitlines():
        name, sign, version = line.split("#")[0].partition("==")
        if sign:
            found[normal(name)] = version.strip()
    return found


def run(input: Input) -> Output:
    wanted, locked = pins(input.wanted), pins(input.locked)
    different = {
        name: f"{version} -> {locked[name]}"
        for name, version in sorted(wanted.items())
        if name in locked and locked[name] != version
    }
    return Output(
        missing=sorted(set(wanted) - set(locked)),
        different=different,
        extra=len(set(locked) - set(wanted)),
    )
