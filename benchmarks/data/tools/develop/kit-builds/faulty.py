"""Kits that a stock gives."""

from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "kit_builds",
    "description": "How many kits can be built from a stock, which part runs out first, and what has to be bought for the wanted number; a part may stand in a kit's list more than once",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    kit: str
    stock: dict[str, int]
    wanted: int = 1


class Output(BaseModel):
    builds: int
    first_out: str | None
    buy: dict[str, int]


def run(input: Input) -> Output:
    """Lines: part, pieces for a kit. Of parts that run out together the first in the list is named."""
    need: dict[str, int] = {}
    for line in Path(input.kit).read_text(encoding="utf-8").splitlines():
        if not line.strip():
            continue
        part, pieces = line.rsplit(maxsplit=1)
        part = part.strip()
        need[part] = int(pieces)
    possible = {part: input.stock.get(part, 0) // pieces for part, pieces in need.items() if pieces}
    first_out = min(possible, key=lambda part: possible[part], default=None)
    buy = {}
    for part, pieces in need.items():
        missing = pieces * input.wanted - input.stock.get(part, 0)
        if missing > 0:
            buy[part] = missing
    return Output(builds=possible[first_out] if first_out else 0, first_out=first_out, buy=buy)
