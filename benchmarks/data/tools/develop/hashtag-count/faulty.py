"""Hashtags in posts."""

import re
from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "hashtag_count",
    "description": "Counts hashtags in posts whatever their case, and how many posts (lines) each is in; names the most frequent, ties in the order of the alphabet",
    "effects": ["read"],
    "dependencies": [],
}

TAG = re.compile(r"(?<!\w)#(\w+)")


class Input(BaseModel):
    path: str
    top: int = 3


class Output(BaseModel):
    uses: dict[str, int]
    posts: dict[str, int]
    most: list[str]


def run(input: Input) -> Output:
    """One post a line."""
    uses: dict[str, int] = {}
    posts: dict[str, int] = {}
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        tags = TAG.findall(line)
        for tag in tags:
            uses[tag.lower()] = uses.get(tag.lower(), 0) + 1
        for tag in set(tags):
            posts[tag.lower()] = posts.get(tag.lower(), 0) + 1
    ranked = sorted(uses, key=lambda tag: (-uses[tag], tag))
    return Output(
        uses=dict(sorted(uses.items())), posts=dict(sorted(posts.items())), most=ranked[: input.top]
    )
