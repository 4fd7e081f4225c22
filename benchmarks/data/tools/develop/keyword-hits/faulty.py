"""What tickets are about."""

import re
from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "keyword_hits",
    "description": "How many tickets hold each of the given words or signs (as whole words, in any case of letters), and which tickets hold none of them",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str
    words: list[str]


class Output(BaseModel):
    tickets: dict[str, int]
    most: str | None
    without: list[int]


def pattern(word: str) -> re.Pattern[str]:
    """No letter, digit or underline stands directly before or behind it."""
    return re.compile(rf"(?<!\w){word}(?!\w)", re.IGNORECASE)


def run(input: Input) -> Output:
    """A ticket on each line: number, a colon, text. Of words named equally often the one given first is the most."""
    patterns = {word: pattern(word) for word in input.words if word}
    tickets = dict.fromkeys(patterns, 0)
    without = []
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        number, colon, text = line.partition(":")
        if not colon:
            continue
        named = [word for word, found in patterns.items() if found.search(text)]
        for word in named:
            tickets[word] += 1
        if not named:
            without.append(int(number))
    most = max(tickets, key=lambda word: tickets[word], default=None)
    return Output(tickets=tickets, most=most if most and tickets[most] else None, without=without)
