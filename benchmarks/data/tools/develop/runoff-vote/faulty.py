"""Counts an instant run-off vote."""

from collections import Counter

from pydantic import BaseModel

TOOL = {
    "name": "runoff_vote",
    "description": "An instant run-off: each round counts every ballot for the first of its names that is still in; who has more than half of the ballots that still count (those with a name still in) wins, else the one with the fewest, of equals the first by name, goes out; the last one in wins",
    "effects": ["pure"],
    "dependencies": [],
}


class Input(BaseModel):
    ballots: list[list[str]]


class Output(BaseModel):
    winner: str | None
    rounds: list[dict[str, int]]
    out: list[str]


def count(ballots: list[list[str]], still: set[str]) -> dict[str, int]:
    firsts = (next((name for name in ballot if name in still), None) for ballot in ballots)
    counted = Counter(name for name in firsts if name is not None)
    return {name: counted[name] for name in sorted(still)}


def run(input: Input) -> Output:
    still = {name for ballot in input.ballots for name in ballot}
    rounds: list[dict[str, int]] = []
    out: list[str] = []
    while still:
        votes = count(input.ballots, still)
        rounds.append(votes)
        leader = max(votes, key=lambda name: votes[name])
        if len(still) == 1 or votes[leader] * 2 > len(input.ballots):
            return Output(winner=leader, rounds=rounds, out=out)
        last = min(votes, key=lambda name: votes[name])
        out.append(last)
        still.remove(last)
    return Output(winner=None, rounds=rounds, out=out)
