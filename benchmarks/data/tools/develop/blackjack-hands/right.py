"""Values of blackjack hands."""

from pydantic import BaseModel

TOOL = {
    "name": "blackjack_hands",
    "description": "Value and result of a hand of blackjack: an ace counts 11, or 1 where the hand would be above 21; two cards with 21 beat any other 21",
    "effects": ["pure"],
    "dependencies": [],
}


class Input(BaseModel):
    player: list[str]
    dealer: list[str]


class Output(BaseModel):
    player: int
    dealer: int
    soft: bool
    result: str


class Hand:
    def __init__(self, cards: list[str]) -> None:
        self.cards = cards
        self.value = sum(self.points(card) for card in cards)
        high = cards.count("A")
        while self.value > 21 and high:
            self.value -= 10
            high -= 1
        self.soft = high > 0

    @staticmethod
    def points(card: str) -> int:
        if card == "A":
            return 11
        return 10 if card in "TJQK" else int(card)

    def rank(self) -> tuple[int, bool]:
        if self.value > 21:
            return (0, False)
        return (self.value, self.value == 21 and len(self.cards) == 2)


def run(input: Input) -> Output:
    player, dealer = Hand(input.player), Hand(input.dealer)
    if player.value > 21 or player.rank() < dealer.rank():
        result = "lost"
    else:
        result = "won" if player.rank() > dealer.rank() else "push"
    return Output(player=player.value, dealer=dealer.value, soft=player.soft, result=result)
