"""Counts the lines of a diff."""

import re
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "diff_summary",
    "description": "Added and removed lines of each file in a unified diff",
    "effects": ["read"],
    "dependencies": [],
}

HUNK = re.compile(r"^@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@")


class Input(BaseModel):
    path: str = Field(description="A diff as git writes it")


class Output(BaseModel):
    files: dict[str, str] = Field(description="Such as +3 -1 for each file")
    added: int
    removed: int
    hunks: int


def run(input: Input) -> Output:
    counts: dict[str, list[int]] = {}
    name = ""
    hunks = 0
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if HUNK.match(line):
            hunks += 1
        elif line.startswith(("--- ", "+++ ")):
            path = line[4:].split("\t")[0]
            if path != "/dev/null":
                name = path[2:]
                counts.setdefault(name, [0, 0])
        elif line.startswith("+"):
            counts[name][0] += 1
        elif line.startswith("-"):
            counts[name][1] += 1
    return Output(
        files={name: f"+{added} -{removed}" for name, (added, removed) in sorted(counts.items())},
        added=sum(added for added, _ in counts.values()),
        removed=sum(removed for _, removed in counts.values()),
        hunks=hunks,
    )
