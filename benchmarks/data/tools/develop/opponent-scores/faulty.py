"""Standings with the opponents' scores."""

from collections import defaultdict

from pydantic import BaseModel

TOOL = {
    "name": "opponent_scores",
    "description": "Standings of a tournament: 1 for a win or a bye, a half for a draw; ties by the sum of the final scores of the opponents, one for each game, then by name",
    "effects": ["pure"],
    "dependencies": [],
}


class Input(BaseModel):
    rounds: list[list[tuple[str, str | None, str]]]


class Output(BaseModel):
    order: list[str]
    scores: dict[str, float]
    tie_break: dict[str, float]


POINTS = {"1-0": (1.0, 0.0), "0-1": (0.0, 1.0), "draw": (0.5, 0.5), "bye": (1.0, 0.0)}


def run(input: Input) -> Output:
    scores: defaultdict[str, float] = defaultdict(float)
    met: defaultdict[str, set[str]] = defaultdict(set)
    for games in input.rounds:
        for one, other, result in games:
            if result not in POINTS:
                raise ValueError(f"not a result: {result}")
            mine, yours = POINTS[result]
            scores[one] += mine
            if other is not None:
                scores[other] += yours
                met[one].add(other)
                met[other].add(one)
    sums = {name: sum(scores[opponent] for opponent in met[name]) for name in scores}
    order = sorted(scores, key=lambda name: (-scores[name], -sums[name], name))
    return Output(
        order=order,
        scores={name: scores[name] for name in order},
        tie_break={name: sums[name] for name in order},
    )
