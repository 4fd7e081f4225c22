"""Short form of IPv6 addresses."""

from itertools import groupby

from pydantic import BaseModel

TOOL = {
    "name": "ipv6_short",
    "description": "Shorten full IPv6 addresses: no leading zeros, small letters, and the longest run of two or more zero groups (the first of equally long ones) becomes ::",
    "effects": ["pure"],
    "dependencies": [],
}


class Input(BaseModel):
    addresses: list[str]


class Output(BaseModel):
    short: list[str]
    saved: int


def zero_runs(groups: list[str]) -> list[tuple[int, int]]:
    """Place and length of each run of zero groups."""
    runs = []
    place = 0
    for value, same in groupby(groups):
        length = len(list(same))
        if value == "0":
            runs.append((place, length))
        place += length
    return runs


def shorten(address: str) -> str:
    groups = [f"{int(group, 16):x}" for group in address.split(":")]
    if len(groups) != 8:
        raise ValueError(f"not a full address: {address}")
    runs = [run for run in zero_runs(groups) if run[1] > 1]
    if not runs:
        return ":".join(groups)
    place, length = runs[0]
    return ":".join(groups[:place]) + "::" + ":".join(groups[place + length :])


def run(input: Input) -> Output:
    short = [shorten(address) for address in input.addresses]
    saved = sum(map(len, input.addresses)) - sum(map(len, short))
    return Output(short=short, saved=saved)
