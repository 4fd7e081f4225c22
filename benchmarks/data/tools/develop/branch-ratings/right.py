"""Averages the ratings of a chain's branches."""

from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "branch_ratings",
    "description": "How many stars the branches of a chain have on average, the average of all ratings of the chain, and which branches lie below a limit or have no rating yet",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="Lines of the form: branch: 5 4 4")
    least: float = 3.0


class Output(BaseModel):
    branches: dict[str, float]
    chain: float | None
    below: list[str]
    unrated: list[str]


def run(input: Input) -> Output:
    """Averages have two digits after the point."""
    branches: dict[str, float] = {}
    below, unrated = [], []
    stars = number = 0
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if not line.strip():
            continue
        branch, _, text = line.partition(":")
        ratings = [int(word) for word in text.split()]
        if not ratings:
            unrated.append(branch)
            continue
        stars += sum(ratings)
        number += len(ratings)
        mean = sum(ratings) / len(ratings)
        branches[branch] = round(mean, 2)
        if mean < input.least:
            below.append(branch)
    chain = round(stars / number, 2) if number else None
    return Output(branches=branches, chain=chain, below=below, unrated=unrated)
