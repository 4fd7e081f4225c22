"""A league's table: three points for a win, one for each side of a draw."""

import re
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "league_table",
    "description": "Table of a league from its results",
    "effects": ["read"],
    "dependencies": [],
}

RESULT = re.compile(r"(\w+) (\d+):(\d+) (\w+)")


class Input(BaseModel):
    path: str


class Output(BaseModel):
    order: list[str]
    points: dict[str, int]
    goals: dict[str, str]


@dataclass
class Team:
    points: int = 0
    scored: int = 0
    taken: int = 0

    @property
    def difference(self) -> int:
        return self.scored - self.taken


def play(home: Team, away: Team, home_goals: int, away_goals: int) -> None:
    home.scored += home_goals
    home.taken += away_goals
    away.scored += away_goals
    away.taken += home_goals
    if home_goals > away_goals:
        home.points += 3
    elif home_goals < away_goals:
        away.points += 3
    else:
        home.points += 1


def run(input: Input) -> Output:
    """Teams by points, goal difference, goals scored and name."""
    teams: dict[str, Team] = {}
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if match := RESULT.fullmatch(line.strip()):
            home, left, right, away = match.groups()
            play(teams.setdefault(home, Team()), teams.setdefault(away, Team()), int(left), int(right))
    order = sorted(teams, key=lambda name: (-teams[name].points, -teams[name].difference, -teams[name].scored, name))
    return Output(
        order=order,
        points={name: teams[name].points for name in order},
        goals={name: f"{teams[name].scored}:{teams[name].taken}" for name in order},
    )
