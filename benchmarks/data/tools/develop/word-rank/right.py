"""Which words a text uses most."""

import re
from collections import Counter
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "word_rank",
    "description": "The most frequent words of a text",
    "effects": ["read"],
    "dependencies": [],
}

WORD = re.compile(r"[A-Za-z']+")


class Input(BaseModel):
    path: str
    top: int = Field(3, ge=1)


class Output(BaseModel):
    words: list[str]
    counts: list[int]
    distinct: int


def words_of(text: str) -> list[str]:
    """All words in small letters."""
    return [match.group().lower() for match in WORD.finditer(text)]


def run(input: Input) -> Output:
    counter: Counter[str] = Counter()
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        counter.update(words_of(line))
    ranked = sorted(counter.items(), key=lambda item: (-item[1], item[0]))[: input.top]
    return Output(
        words=[word for word, _ in ranked],
        counts=[count for _, count in ranked],
        distinct=len(counter),
    )
