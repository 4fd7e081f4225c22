"""Packages of a Debian package list."""

import re
from collections.abc import Iterator
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "deb_stanzas",
    "description": "Names, versions and sizes of the packages in a Packages file, and the size of each section",
    "effects": ["read"],
    "dependencies": [],
}

FIELD = re.compile(r"([\w-]+):\s*(.*)")


class Input(BaseModel):
    path: str = Field(description="Stanzas of lines FIELD: VALUE, with an empty line between two")
    section: str = Field(default="", description="Only packages of this section")


class Package(BaseModel):
    name: str
    version: str
    kib: int
    depends: list[str]


class Output(BaseModel):
    packages: list[Package]
    sections: dict[str, int]


def stanzas(text: str) -> Iterator[dict[str, str]]:
    """The fields of each stanza by their names in small letters; a line that begins with a space goes on."""
    fields: dict[str, str] = {}
    last = ""
    for line in [*text.splitlines(), ""]:
        if not line.strip():
            if fields:
                yield fields
            fields, last = {}, ""
        elif line[0] in " \t" and last:
            fields[last] += " " + line.strip()
        elif match := FIELD.fullmatch(line):
            last = match[1].lower()
            fields[last] = match[2].strip()


def run(input: Input) -> Output:
    packages = []
    sections: dict[str, int] = {}
    for fields in stanzas(Path(input.path).read_text(encoding="utf-8")):
        section = fields.get("section", "none")
        if "package" not in fields or (input.section and section != input.section):
            continue
        size = int(fields.get("installed-size", 0))
        wanted = [part.split()[0] for part in fields.get("depends", "").split(",") if part.strip()]
        packages.append(
            Package(name=fields["package"], version=fields.get("version", ""), kib=size, depends=wanted)
        )
        sections[section] = sections.get(section, 0) + size
    return Output(packages=packages, sections=sections)
