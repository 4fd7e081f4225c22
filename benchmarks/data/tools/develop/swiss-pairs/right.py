"""Pairings of a Swiss tournament."""

from pydantic import BaseModel

TOOL = {
    "name": "swiss_pairs",
    "description": "Pairs players for the next round of a Swiss tournament by points: each with the next one in the ranking whom he or she has not met; with an odd number the last one who had no free round gets it",
    "effects": ["pure"],
    "dependencies": [],
}


class Input(BaseModel):
    points: dict[str, float]
    played: list[list[str]] = []
    byes: list[str] = []


class Output(BaseModel):
    pairs: list[list[str]]
    free: str | None
    again: int


def run(input: Input) -> Output:
    """Players of the same points by name; where everybody left was met already, the next one all the same."""
    waiting = sorted(input.points, key=lambda name: (-input.points[name], name))
    met = {frozenset(pair) for pair in input.played}
    free = None
    if len(waiting) % 2:
        without = [name for name in waiting if name not in input.byes]
        free = (without or waiting)[-1]
        waiting.remove(free)
    pairs = []
    again = 0
    while waiting:
        first = waiting.pop(0)
        fresh = [name for name in waiting if frozenset((first, name)) not in met]
        if fresh:
            other = fresh[0]
        else:
            other = waiting[0]
            again += 1
        waiting.remove(other)
        pairs.append([first, other])
    return Output(pairs=pairs, free=free, again=again)
