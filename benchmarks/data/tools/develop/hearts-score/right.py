"""Scores of a game of hearts."""

from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "hearts_score",
    "description": "Points of the players of a game of hearts, round by round",
    "effects": ["read"],
    "dependencies": [],
}

ALL = 26
QUEEN = 13


class Input(BaseModel):
    path: str = Field(description="The players in the first line; then a round a line: hearts taken by each, with Q for the queen, as 5Q or 0")
    end: int = Field(100, description="The game is over when a player has so many")


class Output(BaseModel):
    totals: dict[str, int]
    winner: str = Field(description="The player with the fewest points once the game is over; the first of several")


def points(taken: str) -> int:
    if taken.upper().endswith("Q"):
        return int(taken[:-1] or 0) + QUEEN
    return int(taken)


def run(input: Input) -> Output:
    """Who takes all hearts and the queen gets nothing, and each other 26."""
    lines = Path(input.path).read_text(encoding="utf-8").splitlines()
    players = lines[0].split() if lines else []
    totals = dict.fromkeys(players, 0)
    over = False
    for line in lines[1:]:
        if over or not line.strip():
            continue
        scores = [points(taken) for taken in line.split()]
        if ALL in scores:
            scores = [0 if score == ALL else ALL for score in scores]
        for player, score in zip(players, scores):
            totals[player] += score
        over = max(totals.values()) >= input.end
    return Output(totals=totals, winner=min(players, key=lambda name: totals[name]) if over else "")
