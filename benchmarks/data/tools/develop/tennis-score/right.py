"""Follows a tennis match point by point."""

from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "tennis_score",
    "description": "The score of a tennis match in sets, games and points from the order of points won",
    "effects": ["read"],
    "dependencies": [],
}

NAMES = ["0", "15", "30", "40"]


class Input(BaseModel):
    path: str = Field(description="A and B for the points that each side won, perhaps with spaces")


class Output(BaseModel):
    sets: list[str] = Field(description="The sets that are over")
    games: str
    points: str


def wins_game(games: list[int], own: int, other: int) -> bool:
    needed = 7 if games == [6, 6] else 4
    return own >= needed and own - other >= 2


def wins_set(own: int, other: int) -> bool:
    return own == 7 or (own == 6 and other <= 4)


def spoken(games: list[int], score: list[int]) -> str:
    """The points of the running game as an umpire says them."""
    if games == [6, 6]:
        return f"{score[0]}:{score[1]}"
    if min(score) >= 3:
        return "deuce" if score[0] == score[1] else f"advantage {'A' if score[0] > score[1] else 'B'}"
    return f"{NAMES[score[0]]}:{NAMES[score[1]]}"


def run(input: Input) -> Output:
    sets: list[str] = []
    games, score = [0, 0], [0, 0]
    for point in Path(input.path).read_text(encoding="utf-8"):
        if point not in "AB":
            continue
        side = "AB".index(point)
        score[side] += 1
        if not wins_game(games, score[side], score[1 - side]):
            continue
        score = [0, 0]
        games[side] += 1
        if wins_set(games[side], games[1 - side]):
            sets.append(f"{games[0]}:{games[1]}")
            games = [0, 0]
    return Output(sets=sets, games=f"{games[0]}:{games[1]}", points=spoken(games, score))
