"""Joins ranges of addresses."""

from ipaddress import IPv4Address

from pydantic import BaseModel

TOOL = {
    "name": "net_ranges",
    "description": "Join IPv4 addresses and ranges (first-last) that overlap or follow one another without a gap, in order, and count the addresses",
    "effects": ["pure"],
    "dependencies": [],
}


class Input(BaseModel):
    ranges: list[str]


class Output(BaseModel):
    ranges: list[str]
    addresses: int


def parse(text: str) -> tuple[int, int]:
    first, _, last = text.replace(" ", "").partition("-")
    low, high = int(IPv4Address(first)), int(IPv4Address(last or first))
    if low > high:
        raise ValueError(f"{text!r} ends before it begins")
    return low, high


def show(low: int, high: int) -> str:
    return str(IPv4Address(low)) if low == high else f"{IPv4Address(low)}-{IPv4Address(high)}"


def run(input: Input) -> Output:
    joined: list[tuple[int, int]] = []
    for low, high in sorted(parse(text) for text in input.ranges):
        if joined and low <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(high, joined[-1][1]))
        else:
            joined.append((low, high))
    return Output(
        ranges=[show(low, high) for low, high in joined],
        addresses=sum(high - low + 1 for low, high in joined),
    )
