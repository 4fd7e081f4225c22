"""Sets and matches of volleyball."""

from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "volleyball_sets",
    "description": "Who won the sets and the match, from the points of the sets of volleyball matches",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="Lines: home - guests: 25:20 18:25 ...")


class Match(BaseModel):
    match: str
    sets: list[int]
    winner: str


class Output(BaseModel):
    matches: list[Match]


def finished(ours: int, theirs: int, number: int) -> bool:
    """A set ends at 25 points, the fifth at 15, with a lead of two."""
    goal = 25
    return max(ours, theirs) >= goal and abs(ours - theirs) >= 2


def run(input: Input) -> Output:
    matches = []
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if not line.strip():
            continue
        teams, scores = line.split(":", 1)
        home, guests = (team.strip() for team in teams.split(" - "))
        won = [0, 0]
        for number, score in enumerate(scores.split(), start=1):
            ours, theirs = map(int, score.split(":"))
            if finished(ours, theirs, number):
                won[0 if ours > theirs else 1] += 1
        winner = home if won[0] == 3 else guests if won[1] == 3 else ""
        matches.append(Match(match=f"{home} - {guests}", sets=won, winner=winner))
    return Output(matches=matches)
