"""Points of chess games."""

import re
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "pgn_points",
    "description": "The points of each player by the games of a PGN file that have ended; a draw is half a point each",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="The games")


class Output(BaseModel):
    points: dict[str, float]
    ended: int


TAG = re.compile(r'^\[(\w+) "(.*)"\]$')
POINTS = {"1-0": (1.0, 0.0), "0-1": (0.0, 1.0), "1/2-1/2": (0.5, 0.5)}


def games(text: str) -> list[dict[str, str]]:
    """The tags of each game, and its moves."""
    found: list[dict[str, str]] = []
    for line in text.splitlines():
        tag = TAG.match(line)
        if tag and tag[1] == "Event":
            found.append({"moves": ""})
        if tag:
            found[-1][tag[1]] = tag[2]
        elif line:
            found[-1]["moves"] += line
    return found


def run(input: Input) -> Output:
    points: dict[str, float] = {}
    ended = 0
    for game in games(Path(input.path).read_text(encoding="utf-8")):
        if game["Result"] not in POINTS:
            continue
        white, black = POINTS[game["Result"]]
        points[game["White"]] = points.get(game["White"], 0.0) + white
        points[game["Black"]] = points.get(game["Black"], 0.0) + black
        ended += 1
    return Output(points=points, ended=ended)
