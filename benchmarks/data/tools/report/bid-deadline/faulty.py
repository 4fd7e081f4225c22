"""Ranks the bids of an auction."""

from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "bid_deadline",
    "description": "The bids of an auction that are in by the deadline, the highest first and of equal ones the earlier first, with the winner; who bid too late, in the order of the list, and who made the first bid of all; times have the offset of the bidder's zone",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="Lines of the form: bidder;amount;time, such as: Ada;150;2024-05-03T12:00+02:00")
    deadline: str = Field(description="The last time for a bid, in the same form")


class Bid(BaseModel):
    bidder: str
    amount: int
    at: str


class Output(BaseModel):
    ranking: list[str]
    winner: str | None
    late: list[str]
    first: str | None


def read(path: str) -> list[Bid]:
    bids = []
    for line in Path(path).read_text(encoding="utf-8").splitlines():
        if line.strip():
            bidder, amount, at = (part.strip() for part in line.split(";"))
            bids.append(Bid(bidder=bidder, amount=int(amount), at=at))
    return bids


def run(input: Input) -> Output:
    bids = read(input.path)
    in_time = [bid for bid in bids if bid.at <= input.deadline]
    late = [bid.bidder for bid in bids if bid.at > input.deadline]
    in_time.sort(key=lambda bid: (-bid.amount, bid.at))
    first = min(bids, key=lambda bid: bid.at, default=None)
    return Output(
        ranking=[f"{bid.bidder} {bid.amount}" for bid in in_time],
        winner=in_time[0].bidder if in_time else None,
        late=late,
        first=first.bidder if first else None,
    )
