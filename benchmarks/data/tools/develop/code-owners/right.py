"""Reviewers of a change, from a CODEOWNERS file."""

from fnmatch import fnmatchcase
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "code_owners",
    "description": "Who has to review which changed files: of the rules of a CODEOWNERS file (a pattern, then owners) the last that matches counts, and * matches slashes too",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str
    changed: list[str]


class Output(BaseModel):
    owners: dict[str, list[str]] = Field(description="Of each owner the files to review")
    unowned: list[str]


def rules(text: str) -> list[tuple[str, list[str]]]:
    found = []
    for line in text.splitlines():
        words = line.split("#")[0].split()
        if words:
            found.append((words[0], words[1:]))
    return found


def run(input: Input) -> Output:
    known = rules(Path(input.path).read_text(encoding="utf-8"))
    owners: dict[str, list[str]] = {}
    unowned = []
    for file in input.changed:
        names = next((names for pattern, names in reversed(known) if fnmatchcase(file, pattern)), [])
        for name in names:
            owners.setdefault(name, []).append(file)
        if not names:
            unowned.append(file)
    return Output(owners=dict(sorted(owners.items())), unowned=unowned)
