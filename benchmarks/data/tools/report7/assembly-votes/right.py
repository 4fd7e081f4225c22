"""Results of the votes of a meeting."""

import csv
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "assembly_votes",
    "description": "Results of motions: carried with more yes than no, with at least half of the members voting; turnout in whole percent",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="CSV with motion, member and vote: yes, no or abstain; a later vote of a member replaces the earlier one")
    members: int = Field(ge=1, description="How many may vote")


class Output(BaseModel):
    results: dict[str, str]
    turnout: dict[str, int]
    carried: int


def result(votes: list[str], members: int) -> str:
    """What became of a motion."""
    if 2 * len(votes) < members:
        return "no quorum"
    if votes.count("yes") > votes.count("no"):
        return "carried"
    return "lost"


def run(input: Input) -> Output:
    ballots: dict[str, dict[str, str]] = {}
    with Path(input.path).open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            ballots.setdefault(row["motion"], {})[row["member"]] = row["vote"].strip().lower()
    results = {motion: result(list(votes.values()), input.members) for motion, votes in ballots.items()}
    return Output(
        results=results,
        turnout={motion: 100 * len(votes) // input.members for motion, votes in ballots.items()},
        carried=sum(value == "carried" for value in results.values()),
    )
