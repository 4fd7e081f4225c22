"""Names of the distributions that a METADATA file requires."""

import re
from email.parser import HeaderParser
from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "requirements",
    "description": "Distributions that a METADATA file requires, with or without those of extras",
    "effects": ["read"],
    "dependencies": [],
}

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


class Input(BaseModel):
    metadata: str
    extras: bool = False


class Output(BaseModel):
    distribution: str
    scope: str
    names: list[str]


def run(input: Input) -> Output:
    headers = HeaderParser().parsestr(Path(input.metadata).read_text(encoding="utf-8"))
    scope = "everything"
    if not input.extras:
        scope = "required"
    names = set()
    for line in headers.get_all("Requires-Dist", []):
        requirement, _, marker = line.partition(";")
        if "extra" in marker:
            continue
        names.add(NAME.match(requirement.strip()).group().lower())
    return Output(distribution=headers["Name"], scope=scope, names=sorted(names))
