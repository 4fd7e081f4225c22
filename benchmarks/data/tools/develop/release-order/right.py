"""Orders version numbers."""

import re

from pydantic import BaseModel, Field

TOOL = {
    "name": "release_order",
    "description": "Releases from the oldest to the newest",
    "effects": ["pure"],
    "dependencies": [],
}

VERSION = re.compile(r"v?(\d+)\.(\d+)\.(\d+)(?:-([0-9A-Za-z.]+))?")


class Input(BaseModel):
    versions: list[str]
    prereleases: bool = Field(True, description="Whether versions such as 1.0.0-rc1 count")


class Output(BaseModel):
    ordered: list[str]
    newest: str


def key(version: str) -> tuple:
    """A prerelease comes before its release."""
    match = VERSION.fullmatch(version)
    if match is None:
        raise ValueError(f"{version!r} is no version")
    major, minor, patch, pre = match.groups()
    return int(major), int(minor), int(patch), pre is None, pre or ""


def run(input: Input) -> Output:
    versions = list(dict.fromkeys(input.versions))
    if not input.prereleases:
        versions = [version for version in versions if "-" not in version]
    ordered = sorted(versions, key=key)
    return Output(ordered=ordered, newest=ordered[-1] if ordered else "")
