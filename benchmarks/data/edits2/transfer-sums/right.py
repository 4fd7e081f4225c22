"""Adds up how much was sent to each host."""

import re
from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "transfer_sums",
    "description": "Adds up the sizes of a log of transfers (web1 1.5MB) for each host, in whole bytes and as a label; the most first, of as many bytes by name; a line that has no size is refused",
    "effects": ["read"],
    "dependencies": [],
}
SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]?)B")
FACTORS = {"": 1, "K": 1024, "M": 1024**2, "G": 1024**3, "T": 1024**4}


class Input(BaseModel):
    path: str


class Row(BaseModel):
    host: str
    bytes: int
    label: str


class Output(BaseModel):
    rows: list[Row]


def size(text: str) -> int:
    """1.5KB in bytes; a part of a byte is cut off."""
    found = SIZE.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"no size: {text!r}")
    return int(float(found[1]) * FACTORS[found[2]])


def label(number: int) -> str:
    for unit in reversed(FACTORS):
        if number >= FACTORS[unit]:
            return f"{number / FACTORS[unit]:.1f} {unit}B"
    return "0.0 B"


def run(input: Input) -> Output:
    sums: dict[str, int] = {}
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if line.strip() and not line.startswith("#"):
            host, _, text = line.strip().partition(" ")
            sums[host] = sums.get(host, 0) + size(text)
    order = sorted(sums, key=lambda host: (-sums[host], host))
    return Output(rows=[Row(host=host, bytes=sums[host], label=label(sums[host])) for host in order])
