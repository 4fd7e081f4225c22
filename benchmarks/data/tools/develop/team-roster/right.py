"""Rosters of teams, read from a list."""

from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "team_roster",
    "description": "Members of each team and their numbers",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="Lines: team: member, member, ...")
    captain_bonus: int = Field(0, ge=0, description="Added to the number of the first member")


class Output(BaseModel):
    teams: dict[str, list[str]]
    sizes: dict[str, int]


def number(names: list[str], bonus: int, into: list[str] | None = None) -> list[str]:
    """The names with their numbers, counted from one; the captain's number is higher by the bonus."""
    into = [] if into is None else into
    for position, name in enumerate(names, start=1):
        shown = position + bonus if position == 1 else position
        into.append(f"{shown} {name}")
    return into


def run(input: Input) -> Output:
    teams = {}
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if not line.strip():
            continue
        team, members = line.split(":")
        names = [name.strip() for name in members.split(",")]
        teams[team.strip()] = list(number(names, input.captain_bonus))
    return Output(teams=teams, sizes={team: len(names) for team, names in teams.items()})
