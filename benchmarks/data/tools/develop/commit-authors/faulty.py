"""Who wrote how much, from `git log --numstat` boiled down to one line a commit."""

from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "commit_authors",
    "description": "Commits and changed lines of each author of a log, by mail address, most commits first",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str
    top: int = 5


class Output(BaseModel):
    authors: list[str]
    commits: list[int]
    lines: list[int]
    people: int


@dataclass
class Share:
    name: str = ""
    commits: int = 0
    lines: int = 0


def run(input: Input) -> Output:
    shares: dict[str, Share] = defaultdict(Share)
    for raw in Path(input.path).read_text(encoding="utf-8").splitlines():
        if not raw:
            continue
        _sha, name, mail, plus, minus = raw.split("|")
        share = shares[mail.strip()]
        share.name = share.name or name  # the first one wins, later ones may be nicknames
        share.commits += 1
        share.lines += int(plus) + int(minus)
    ranked = sorted(shares.values(), key=lambda s: (-s.commits, -s.lines, s.name))
    best = ranked[: input.top]
    return Output(
        authors=[s.name for s in best],
        commits=[s.commits for s in best],
        lines=[s.lines for s in best],
        people=len(shares),
    )
