"""Which version the commits since the last release call for."""

import re
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "changelog_next",
    "description": "Next version number from the subjects of the commits since the last release",
    "effects": ["read"],
    "dependencies": [],
}

SUBJECT = re.compile(r"^(\w+)(?:\(([^)]*)\))?(!)?: (.+)$")


class Input(BaseModel):
    current: str = Field(description="Version of the last release, such as 1.4.2")
    path: str = Field(description="One commit subject on each line: type(scope)!: text")


class Output(BaseModel):
    version: str
    level: str
    features: list[str]


def level_of(subjects: list[tuple[str, bool, str]]) -> str:
    if any(breaking for _, breaking, _ in subjects):
        return "major"
    kinds = {kind for kind, _, _ in subjects}
    if "feat" in kinds:
        return "minor"
    if kinds & {"fix", "perf"}:
        return "patch"
    return "none"


def bump(version: str, level: str) -> str:
    major, minor, patch = (int(part) for part in version.removeprefix("v").split("."))
    if level == "major":
        return f"{major + 1}.0.0"
    if level == "minor":
        return f"{major}.{minor + 1}.0"
    if level == "patch":
        return f"{major}.{minor}.{patch + 1}"
    return f"{major}.{minor}.{patch}"


def run(input: Input) -> Output:
    found = [
        SUBJECT.match(line.strip()) for line in Path(input.path).read_text(encoding="utf-8").splitlines()
    ]
    subjects = [(match[1].lower(), bool(match[3]), match[4]) for match in found if match]
    level = level_of(subjects)
    features = sorted(text for kind, _, text in subjects if kind == "feat")
    return Output(version=bump(input.current, level), level=level, features=features)
