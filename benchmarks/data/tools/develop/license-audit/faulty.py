"""Licences that a company allows."""

import re
from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "license_audit",
    "description": "Which packages of a list may be used, by the licences allowed; a package may say several (MIT OR GPL-3.0-only AND BSD-3-Clause), and AND binds closer than OR; names those that say nothing as unclear",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str
    allowed: list[str]


class Output(BaseModel):
    usable: list[str]
    refused: dict[str, str]
    unclear: list[str]


def allowed_one(name: str, allowed: set[str]) -> bool:
    """An exception (WITH) only gives more rights: the licence before it is enough."""
    return name.lower() in allowed or name.partition(" WITH ")[0].lower() in allowed


def fits(expression: str, allowed: set[str]) -> bool:
    words = re.split(" (AND|OR) ", expression)
    result = allowed_one(words[0], allowed)
    for link, name in zip(words[1::2], words[2::2], strict=True):
        if link == "AND":
            result = result and allowed_one(name, allowed)
        else:
            result = result or allowed_one(name, allowed)
    return result


def run(input: Input) -> Output:
    """Lines: package, a colon, its licences. Capitals in the name of a licence say nothing."""
    allowed = {name.lower() for name in input.allowed}
    usable, unclear = [], []
    refused: dict[str, str] = {}
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        package, _, said = line.partition(":")
        expression = re.sub(r"\s+", " ", said).strip()
        if not package.strip():
            continue
        if expression in ("", "NOASSERTION", "UNKNOWN"):
            unclear.append(package.strip())
        elif fits(expression, allowed):
            usable.append(package.strip())
        else:
            refused[package.strip()] = expression
    return Output(usable=usable, refused=refused, unclear=unclear)
