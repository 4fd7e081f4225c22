"""Picks of a draft."""

from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "snake_draft",
    "description": "Which team picks which player in a draft whose order turns round after each round",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="The ranked players, one a line; the best that is left is picked")
    teams: list[str]
    size: int = Field(3, description="Players that a team may have")
    kept: dict[str, list[str]] = Field({}, description="Players that teams have before the draft")


class Output(BaseModel):
    squads: dict[str, list[str]]
    left: list[str]


def run(input: Input) -> Output:
    """Teams pick in turn, the last of a round first in the next; who is full is passed over."""
    squads = {team: list(input.kept.get(team, [])) for team in input.teams}
    taken = {player for squad in squads.values() for player in squad}
    lines = Path(input.path).read_text(encoding="utf-8").splitlines()
    players = [line.strip() for line in lines if line.strip() and line.strip() not in taken]
    order = list(input.teams)
    while players and any(len(squad) < input.size for squad in squads.values()):
        for team in order:
            if players and len(squads[team]) < input.size:
                squads[team].append(players.pop(0))
    return Output(squads=squads, left=players)
