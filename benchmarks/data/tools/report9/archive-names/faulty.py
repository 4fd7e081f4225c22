"""Releases in a folder of source archives."""

import re
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "archive_names",
    "description": "Projects and versions from the names of source archives, the newest version of each, and what is no archive",
    "effects": ["read"],
    "dependencies": [],
}

ENDING = ".tar.gz"
NAME = re.compile(r"(.+)-v?(\d[^-]*(?:-[a-z]+\d*)?)")


class Input(BaseModel):
    path: str = Field(description="One file name a line")
    project: str = Field(default="", description="Only archives of this project")


class Output(BaseModel):
    releases: dict[str, list[str]]
    newest: dict[str, str]
    others: list[str]


def split(file: str) -> tuple[str, str] | None:
    """The project and the version of an archive; None for other files."""
    if not file.endswith(ENDING):
        return None
    match = NAME.fullmatch(file.rstrip(ENDING))
    return (match[1], match[2]) if match else None


def order(version: str) -> list[tuple[int, int, str]]:
    """For sorting: numbers by their size, before them what is a text."""
    parts = re.findall(r"\d+|[a-z]+", version)
    return [(1, int(part), "") if part.isdigit() else (0, 0, part) for part in parts]


def run(input: Input) -> Output:
    releases: dict[str, list[str]] = {}
    others = []
    for file in Path(input.path).read_text(encoding="utf-8").split():
        found = split(file)
        if found is None:
            others.append(file)
            continue
        project, version = found
        if not input.project or project == input.project:
            releases.setdefault(project, []).append(version)
    for versions in releases.values():
        versions.sort(key=order)
    newest = {project: versions[-1] for project, versions in releases.items()}
    return Output(releases=releases, newest=newest, others=others)
