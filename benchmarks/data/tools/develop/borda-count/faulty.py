"""Borda's count."""

from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "borda_count",
    "description": "Points of candidates by Borda's count: with n candidates n-1 for a first place, one less for the next, and so on",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="Lines: number of ballots: candidates from the best on, divided by >")
    candidates: list[str]


class Output(BaseModel):
    points: dict[str, float]
    winners: list[str]


def ballot(text: str, candidates: list[str]) -> dict[str, float]:
    """Who is not named shares the points of the places that are left."""
    points: dict[str, float] = {}
    best = len(candidates) - 1
    for name in (part.strip() for part in text.split(">")):
        if name in candidates and name not in points:
            points[name] = float(best - len(points))
    return points


def run(input: Input) -> Output:
    totals = dict.fromkeys(input.candidates, 0.0)
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if ":" not in line:
            continue
        number, text = line.split(":", 1)
        for name, points in ballot(text, input.candidates).items():
            totals[name] += int(number) * points
    most = max(totals.values(), default=0.0)
    return Output(points=totals, winners=[name for name, points in totals.items() if points == most])
