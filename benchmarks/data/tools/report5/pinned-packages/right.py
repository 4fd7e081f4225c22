"""Pinned requirements against installed packages."""

import re
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "pinned_packages",
    "description": "Differences between pinned requirements and the packages that pip freeze shows",
    "effects": ["read"],
    "dependencies": [],
}

PIN = re.compile(r"([A-Za-z0-9._-]+)(?:\[[^\]]*\])?\s*==\s*([^\s;#]+)")


class Input(BaseModel):
    requirements: str = Field(description="A requirements file with pins")
    frozen: str = Field(description="Output of pip freeze")
    ignore: list[str] = Field([], description="Packages that need not be asked for")


class Output(BaseModel):
    missing: list[str]
    other: dict[str, str]
    surplus: list[str]


def asked(text: str) -> dict[str, str]:
    """Pins of a requirements file, without options and remarks."""
    pins = {}
    for line in text.splitlines():
        line = line.split("#")[0].strip()
        if not line or line.startswith("-"):
            continue
        match = PIN.match(line)
        if match:
            pins[match[1].lower()] = match[2]
    return pins


def installed(text: str) -> dict[str, str]:
    found = {}
    for line in text.splitlines():
        name, sign, version = line.strip().partition("==")
        if sign:
            found[name.lower()] = version
    return found


def run(input: Input) -> Output:
    pins = asked(Path(input.requirements).read_text(encoding="utf-8"))
    here = installed(Path(input.frozen).read_text(encoding="utf-8"))
    missing = sorted(name for name in pins if name not in here)
    other = {
        name: f"{pins[name]} -> {here[name]}" for name in sorted(pins) if name in here and here[name] != pins[name]
    }
    known = {*pins, *(name.lower() for name in input.ignore)}
    return Output(missing=missing, other=other, surplus=sorted(set(here) - known))
