"""Tags of posts."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "tag_tally",
    "description": "How many posts have each tag, whatever its case; the commonest first, then by the alphabet",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="Lines of the form title | tag, tag")
    at_least: int = Field(1, ge=1, description="Tags with fewer posts are left out")


class Output(BaseModel):
    tags: list[str] = Field(description="tag: posts")
    posts: int


def tags_of(line: str) -> Iterator[str]:
    _, _, listed = line.rpartition("|")
    for tag in listed.split(","):
        tag = tag.strip()
        if tag:
            yield tag


def run(input: Input) -> Output:
    lines = [line for line in Path(input.path).read_text(encoding="utf-8").splitlines() if "|" in line]
    counts: Counter[str] = Counter()
    for line in lines:
        counts.update(set(tags_of(line)))
    ranked = sorted(counts.items(), key=lambda each: (-each[1], each[0]))
    return Output(tags=[f"{tag}: {count}" for tag, count in ranked if count >= input.at_least], posts=len(lines))
