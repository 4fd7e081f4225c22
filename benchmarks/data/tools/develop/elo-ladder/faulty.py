"""Elo ratings of a small club."""

from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "elo_ladder",
    "description": "Elo ratings after the games of a file, a line each, both players rated at once",
    "effects": ["read"],
    "dependencies": [],
}

POINTS = {"1-0": 1.0, "0-1": 0.0, "1/2": 0.5}


class Input(BaseModel):
    path: str
    start: float = Field(1500, description="the rating of somebody new")
    k: float = 32


class Output(BaseModel):
    ratings: dict[str, float]
    ladder: list[str]
    games: dict[str, int]


def expected(mine: float, other: float) -> float:
    return 1 / (1 + 10 ** ((other - mine) / 400))


def run(input: Input) -> Output:
    ratings: dict[str, float] = {}
    games: dict[str, int] = {}
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if not line.strip():
            continue
        first, second, result = line.split()
        for name in (first, second):
            ratings.setdefault(name, input.start)
            games[name] = games.get(name, 0) + 1
        points = POINTS[result]
        ratings[first] += input.k * (points - expected(ratings[first], ratings[second]))
        ratings[second] += input.k * ((1 - points) - expected(ratings[second], ratings[first]))
    rounded = {name: round(value, 1) for name, value in ratings.items()}
    ladder = sorted(rounded, key=lambda name: (-rounded[name], name))
    return Output(ratings=rounded, ladder=ladder, games=games)
