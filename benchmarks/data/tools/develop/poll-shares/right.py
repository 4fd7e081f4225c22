"""Shares of the answers in a poll."""

from collections import Counter

from pydantic import BaseModel, Field

TOOL = {
    "name": "poll_shares",
    "description": "Percentage of each answer of a poll",
    "effects": ["pure"],
    "dependencies": [],
}


class Input(BaseModel):
    answers: list[str] = Field(description="An empty text means that no answer was given")


class Output(BaseModel):
    percent: dict[str, float]
    given: int
    leader: str


def shares(counts: Counter[str]) -> dict[str, float]:
    """Of the answers that were given."""
    total = counts.total()
    return {answer: round(100 * count / total, 1) for answer, count in sorted(counts.items())}


def run(input: Input) -> Output:
    given = [answer.strip().lower() for answer in input.answers if answer.strip()]
    counts = Counter(given)
    if not counts:
        return Output(percent={}, given=0, leader="")
    most = max(counts.values())
    leaders = [answer for answer, count in counts.items() if count == most]
    return Output(percent=shares(counts), given=len(given), leader="/".join(sorted(leaders)))
