"""The longest chain of dominoes."""

from pydantic import BaseModel

TOOL = {
    "name": "domino_chain",
    "description": "Longest chain of dominoes from an open end: tiles may be turned, each is used once; of equally long chains the one found first, trying the tiles in order",
    "effects": ["pure"],
    "dependencies": [],
}


Tile = tuple[int, int]


class Input(BaseModel):
    start: int
    tiles: list[Tile]


class Output(BaseModel):
    chain: list[Tile]
    pips: int
    left: int


def longest(end: int, tiles: list[Tile]) -> list[Tile]:
    best: list[Tile] = []
    for number, (one, other) in enumerate(tiles):
        rest = tiles[:number] + tiles[number + 1 :]
        if one == end:
            chain = [(one, other), *longest(other, rest)]
        elif other == end:
            chain = [(other, one), *longest(one, rest)]
        else:
            continue
        if len(chain) > len(best):
            best = chain
    return best


def run(input: Input) -> Output:
    chain = longest(input.start, input.tiles)
    return Output(
        chain=chain,
        pips=sum(one + other for one, other in chain),
        left=len(input.tiles) - len(chain),
    )
