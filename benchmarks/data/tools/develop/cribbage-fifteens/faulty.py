"""Fifteens and pairs of a cribbage hand."""

from itertools import combinations

from pydantic import BaseModel

TOOL = {
    "name": "cribbage_fifteens",
    "description": "Points of a hand of cribbage for fifteens (2 for each set of cards that adds up to 15, court cards count 10) and for pairs (2 each); cards are written like 5H or TD",
    "effects": ["pure"],
    "dependencies": [],
}


class Input(BaseModel):
    cards: list[str]


class Output(BaseModel):
    fifteens: int
    pairs: int
    points: int
    smallest: int | None


def value(card: str) -> int:
    rank = card[0]
    if rank in "TJQK":
        return 10
    return 1 if rank == "A" else int(rank)


def fifteens(values: list[int]) -> list[int]:
    """The sizes of the sets that add up to 15."""
    sizes = []
    for size in range(2, len(values)):
        sizes += [size for chosen in combinations(values, size) if sum(chosen) == 15]
    return sizes


def run(input: Input) -> Output:
    sizes = fifteens([value(card) for card in input.cards])
    pairs = sum(one[0] == other[0] for one, other in combinations(input.cards, 2))
    return Output(
        fifteens=len(sizes),
        pairs=pairs,
        points=2 * (len(sizes) + pairs),
        smallest=min(sizes, default=None),
    )
