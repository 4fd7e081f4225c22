"""Pay with gift cards."""

from pydantic import BaseModel

TOOL = {
    "name": "gift_cards",
    "description": "Pays orders from gift cards, the card that ends first being used first, and says what is left to pay and on each card (cents)",
    "effects": ["pure"],
    "dependencies": [],
}


class Card(BaseModel):
    code: str
    ends: str
    cents: int


class Input(BaseModel):
    cards: list[Card]
    orders: list[int]


class Output(BaseModel):
    to_pay: list[int]
    left: dict[str, int]
    used_up: list[str]


def run(input: Input) -> Output:
    """Orders in the order given; of cards with one end date the one with the lower code first."""
    cards = sorted(input.cards, key=lambda card: (card.ends, card.code))
    left = {card.code: card.cents for card in cards}
    to_pay = []
    for price in input.orders:
        open_cents = price
        for card in cards:
            if open_cents <= 0:
                break
            taken = min(left[card.code], open_cents)
            left[card.code] -= taken
            open_cents -= taken
        to_pay.append(open_cents)
    used_up = [card.code for card in cards if left[card.code] == 0]
    return Output(to_pay=to_pay, left=left, used_up=used_up)
