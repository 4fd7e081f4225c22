"""Names poker hands."""

from collections import Counter

from pydantic import BaseModel, Field

TOOL = {
    "name": "poker_hand",
    "description": "The name of five cards in poker (rank 2 to 9, T, J, Q, K, A and suit C, D, H, S): straight flush, four of a kind, full house, flush, straight, three of a kind, two pairs, pair or high card, and its deciding rank: that of the most frequent cards, the highest of these, of a straight its highest; an ace may be the lowest card of a straight, which then ends at 5",
    "effects": ["pure"],
    "dependencies": [],
}

RANKS = "23456789TJQKA"
KINDS = {
    (4, 1): "four of a kind",
    (3, 2): "full house",
    (3, 1, 1): "three of a kind",
    (2, 2, 1): "two pairs",
    (2, 1, 1, 1): "pair",
}


class Input(BaseModel):
    cards: list[str] = Field(min_length=5, max_length=5)


class Output(BaseModel):
    name: str
    rank: str


def straight_top(values: list[int]) -> int | None:
    """The highest card of a straight; the values are sorted downwards."""
    if all(high - low == 1 for high, low in zip(values, values[1:])):
        return values[0]
    return None


def run(input: Input) -> Output:
    cards = [card.strip().upper() for card in input.cards]
    if len(set(cards)) < 5:
        raise ValueError("a card is there twice")
    values = sorted((RANKS.index(card[0]) for card in cards), reverse=True)
    flush = len({card[1] for card in cards}) == 1
    top = straight_top(values)
    if top is not None:
        return Output(name="straight flush" if flush else "straight", rank=RANKS[top])
    counts = sorted(Counter(values).items(), key=lambda entry: (-entry[1], -entry[0]))
    name = KINDS.get(tuple(count for _, count in counts), "flush" if flush else "high card")
    return Output(name=name, rank=RANKS[counts[0][0]])
