"""Distributes the seats of a council: highest quotients, parties below the threshold left out."""

from pydantic import BaseModel, Field

TOOL = {
    "name": "seat_shares",
    "description": "Seats of the parties by the D'Hondt method",
    "effects": ["pure"],
    "dependencies": [],
}


class Input(BaseModel):
    votes: dict[str, int]
    seats: int = Field(gt=0)
    threshold_percent: float = Field(0, ge=0, description="Parties with at least this share take part")


class Output(BaseModel):
    seats: dict[str, int]
    excluded: list[str]


def eligible(votes: dict[str, int], threshold: float) -> dict[str, int]:
    total = sum(votes.values())
    return {party: count for party, count in votes.items() if count * 100 > threshold * total}


def distribute(votes: dict[str, int], seats: int) -> dict[str, int]:
    """One seat after the other to the largest quotient; of equal ones, to the first by name."""
    won = {party: 0 for party in votes}
    for _ in range(seats):
        best = max(sorted(votes), key=lambda party: votes[party] / (won[party] + 1))
        won[best] += 1
    return won


def run(input: Input) -> Output:
    taking_part = eligible(input.votes, input.threshold_percent)
    excluded = sorted(party for party in input.votes if party not in taking_part)
    return Output(seats=distribute(taking_part, input.seats), excluded=excluded)
