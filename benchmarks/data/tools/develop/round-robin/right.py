"""Fixtures of a round robin by the circle method."""

from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "round_robin",
    "description": "Fixtures of a league in which all teams meet once, round by round",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="One team a line")
    swap: bool = Field(False, description="The second team of a game is the one at home")


class Output(BaseModel):
    rounds: list[list[str]]
    resting: list[str]


def run(input: Input) -> Output:
    """With an odd number of teams one of them rests in each round."""
    lines = Path(input.path).read_text(encoding="utf-8").splitlines()
    teams = [line.strip() for line in lines if line.strip()]
    if len(teams) < 2:
        return Output(rounds=[], resting=[])
    if len(teams) % 2:
        teams.append("")
    rounds: list[list[str]] = []
    resting: list[str] = []
    for _ in range(len(teams) - 1):
        games = []
        for place in range(len(teams) // 2):
            home, guest = teams[place], teams[-1 - place]
            if not home or not guest:
                resting.append(home or guest)
                continue
            games.append(f"{guest} - {home}" if input.swap else f"{home} - {guest}")
        rounds.append(games)
        teams.insert(1, teams.pop())
    return Output(rounds=rounds, resting=resting)
