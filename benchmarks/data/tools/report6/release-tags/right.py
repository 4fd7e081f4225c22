"""Tags of releases by version."""

import re

from pydantic import BaseModel, Field

TOOL = {
    "name": "release_tags",
    "description": "Tags of releases by version, newest first, and the newest final release",
    "effects": ["read"],
    "dependencies": [],
}
TAG = re.compile(r"v?(\d+)\.(\d+)\.(\d+)(?:-(\w+))?")


class Input(BaseModel):
    tags: list[str]
    prereleases: bool = Field(False, description="Whether to list those as well")


class Output(BaseModel):
    ordered: list[str]
    newest: str | None
    majors: dict[str, int]
    ignored: list[str]


def key(found: re.Match[str]) -> tuple[object, ...]:
    """A final release comes after its own prereleases."""
    major, minor, patch, label = found.groups()
    return (int(major), int(minor), int(patch), label is None, label or "")


def run(input: Input) -> Output:
    known, ignored = [], []
    for tag in input.tags:
        found = TAG.fullmatch(tag)
        if found:
            known.append(found)
        else:
            ignored.append(tag)
    known.sort(key=key, reverse=True)
    final = [found for found in known if not found[4]]
    majors: dict[str, int] = {}
    for found in final:
        majors[found[1]] = majors.get(found[1], 0) + 1
    listed = known if input.prereleases else final
    return Output(
        ordered=[found[0] for found in listed],
        newest=final[0][0] if final else None,
        majors=majors,
        ignored=ignored,
    )
