"""Who hands over to whom."""

from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "shift_handover",
    "description": "Who hands over to whom at the posts of a roster, and how often, from the names of each post in the order of their shifts; who has two shifts in a row hands over to nobody; tells who takes over most often, and how many handovers each post has",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str


class Output(BaseModel):
    handovers: dict[str, int]
    posts: dict[str, int]
    takes_most: str | None


def run(input: Input) -> Output:
    """Lines: post: name, name, ..."""
    handovers: dict[str, int] = {}
    posts: dict[str, int] = {}
    takes: dict[str, int] = {}
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        post, colon, listed = line.partition(":")
        if not colon:
            continue
        names = [name.strip() for name in listed.split(",") if name.strip()]
        posts[post.strip()] = 0
        for name in names[:-1]:
            taker = names[names.index(name) + 1]
            if taker == name:
                continue
            pair = f"{name} > {taker}"
            handovers[pair] = handovers.get(pair, 0) + 1
            posts[post.strip()] += 1
            takes[taker] = takes.get(taker, 0) + 1
    most = min(takes, key=lambda name: (-takes[name], name), default=None)
    return Output(handovers=dict(sorted(handovers.items())), posts=posts, takes_most=most)
