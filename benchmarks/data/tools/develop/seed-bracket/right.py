"""First round of a knock-out by seeds."""

from pydantic import BaseModel

TOOL = {
    "name": "seed_bracket",
    "description": "First round of a knock-out for players in seeding order: the places are the next power of two, best against worst in the usual bracket order, and the best seeds get byes",
    "effects": ["pure"],
    "dependencies": [],
}


class Input(BaseModel):
    players: list[str]


class Output(BaseModel):
    pairs: list[list[str]]
    byes: list[str]
    rounds: int


def bracket(size: int) -> list[int]:
    """Seeds in the order of the bracket: 1 and 2 can only meet in the final."""
    if size == 1:
        return [1]
    order = []
    for seed in bracket(size // 2):
        order += [seed, size + 1 - seed]
    return order


def run(input: Input) -> Output:
    size = 1
    rounds = 0
    while size < len(input.players):
        size *= 2
        rounds += 1
    players = dict(enumerate(input.players, start=1))
    seeds = bracket(size)
    pairs = []
    byes = []
    for one, other in zip(seeds[::2], seeds[1::2]):
        if other in players:
            pairs.append([players[one], players[other]])
        elif one in players:
            byes.append(players[one])
    return Output(pairs=pairs, byes=byes, rounds=rounds)
