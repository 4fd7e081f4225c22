"""Keys for a list of literature."""

import unicodedata
from collections import Counter
from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "cite_keys",
    "description": "Keys such as lee2020 for a list of literature; where several works share a key, all of them get a letter in the order of the list (lee2020a, lee2020b)",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str


class Output(BaseModel):
    keys: list[str]
    shared: dict[str, int]
    works: int


def plain(text: str) -> str:
    """Small letters a to z only; accents are dropped."""
    pieces = unicodedata.normalize("NFKD", text.lower())
    return "".join(letter for letter in pieces if "a" <= letter <= "z")


def run(input: Input) -> Output:
    """Lines: authors | year | title; authors with semicolons between them, the first one's family name makes the key."""
    bases = []
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if not line.strip():
            continue
        authors, year, _ = (cell.strip() for cell in line.split("|", 2))
        family = authors.split(";")[0].split(",")[0]
        bases.append(f"{plain(family) or 'anon'}{year}")
    count = Counter(bases)
    used: Counter[str] = Counter()
    keys = []
    for base in bases:
        letter = chr(ord("a") + used[base]) if count[base] > 1 else ""
        used[base] += 1
        keys.append(base + letter)
    shared = {base: number for base, number in count.items() if number > 1}
    return Output(keys=keys, shared=shared, works=len(bases))
