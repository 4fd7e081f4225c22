"""Penalty shoot-outs."""

from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "shootout_kicks",
    "description": "The result of a penalty shoot-out, and after which kick it was decided",
    "effects": ["read"],
    "dependencies": [],
}

KICKS = 5


class Input(BaseModel):
    path: str = Field(description="Lines: home - guests: x for a goal and o for a miss, in turn, home first")


class Shootout(BaseModel):
    teams: str
    goals: tuple[int, int]
    winner: str
    decided: int = Field(description="Number of the kick; 0 where it is not decided")


class Output(BaseModel):
    shootouts: list[Shootout]


def decided(goals: list[int], kicks: int) -> bool:
    """Whether one side is out of reach; after five kicks each, whether it leads after as many kicks."""
    left = [max(KICKS - (kicks + 1) // 2, 0), max(KICKS - kicks // 2, 0)]
    if kicks > 2 * KICKS:
        left = [0, kicks % 2]
    return goals[0] > goals[1] + left[1] or goals[1] > goals[0] + left[0]


def run(input: Input) -> Output:
    shootouts = []
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if ":" not in line:
            continue
        teams, kicks = line.split(":", 1)
        names = [name.strip() for name in teams.split(" - ")]
        goals, end = [0, 0], 0
        for number, kick in enumerate(kicks.replace(" ", "").lower(), start=1):
            goals[(number - 1) % 2] += kick == "x"
            if decided(goals, number):
                end = number
                break
        winner = names[0 if goals[0] > goals[1] else 1] if end else ""
        shootouts.append(Shootout(teams=teams.strip(), goals=(goals[0], goals[1]), winner=winner, decided=end))
    return Output(shootouts=shootouts)
