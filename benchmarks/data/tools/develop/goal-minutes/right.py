"""Score by the halves of a match."""

import re
from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "goal_minutes",
    "description": "The score of a football match at half-time and at the end, and who scored when; 45+2 is the second minute added to the first half, and own goals (og) count for the other side",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str


class Output(BaseModel):
    half_time: str
    final: str
    goals: list[str]


LINE = re.compile(r"(home|away)\s+(\S+)\s+(.+?)(\s+\(og\))?")


def minute(text: str) -> tuple[int, int]:
    """The minute of the match, and that of added time."""
    base, _, added = text.rstrip("'").partition("+")
    return int(base), int(added or 0)


def run(input: Input) -> Output:
    """Lines: side of the scorer, minute, name; the first half ends with minute 45. Goals in the order of play."""
    goals = []
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        match = LINE.fullmatch(line.strip())
        if match is None:
            continue
        side, text, name, own = match.groups()
        if own:
            side = "away" if side == "home" else "home"
        goals.append((minute(text), side, name, text))
    goals.sort(key=lambda goal: goal[0])
    first, final = [0, 0], [0, 0]
    for (base, _), side, _, _ in goals:
        column = 0 if side == "home" else 1
        final[column] += 1
        first[column] += base <= 45
    return Output(
        half_time=f"{first[0]}:{first[1]}",
        final=f"{final[0]}:{final[1]}",
        goals=[f"{text} {name}" for _, _, name, text in goals],
    )
