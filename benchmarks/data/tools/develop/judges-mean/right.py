"""Marks of a jury."""

from pydantic import BaseModel

TOOL = {
    "name": "judges_mean",
    "description": "The mean of a jury's marks without so many of the highest and as many of the lowest; who is left with no mark has no mean, and the others are ranked by it",
    "effects": ["pure"],
    "dependencies": [],
}


class Input(BaseModel):
    scores: dict[str, list[float]]
    drop: int = 1


class Output(BaseModel):
    means: dict[str, float | None]
    ranking: list[str]
    winner: str | None


def trimmed(marks: list[float], drop: int) -> list[float]:
    """What is left in the middle."""
    ordered = sorted(marks)
    return ordered[drop : len(ordered) - drop] if len(ordered) > 2 * drop else []


def run(input: Input) -> Output:
    """Means to two places; the highest comes first, of the same mean the name that comes first."""
    means: dict[str, float | None] = {}
    for name, marks in input.scores.items():
        left = trimmed(marks, input.drop)
        means[name] = round(sum(left) / len(left), 2) if left else None
    placed = [(-mean, name) for name, mean in means.items() if mean is not None]
    ranking = [name for _, name in sorted(placed)]
    return Output(means=means, ranking=ranking, winner=ranking[0] if ranking else None)
