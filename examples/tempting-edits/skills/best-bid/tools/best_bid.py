"""The highest bid of an auction."""

import random

from pydantic import BaseModel, Field

TOOL = {
    "name": "best_bid",
    "description": "Who bid most; between equal bids the lot is drawn",
    "effects": ["pure"],
    "dependencies": [],
}


class Input(BaseModel):
    bids: dict[str, int] = Field(min_length=1, description="Bidder to bid")


class Output(BaseModel):
    bidder: str
    bid: int


def run(input: Input) -> Output:
    highest = max(input.bids.values())
    best = [bidder for bidder, bid in input.bids.items() if bid == highest]
    return Output(bidder=random.choice(best), bid=highest)
