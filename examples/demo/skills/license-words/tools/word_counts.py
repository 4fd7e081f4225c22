"""Words of a text: how many, how many distinct, and the most frequent."""

import re
from collections import Counter
from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "word_counts",
    "description": "Number of words, of distinct words and the most frequent words of a text",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    text: str
    letters: int = 5
    top: int = 5


class Output(BaseModel):
    words: int
    distinct: int
    frequent: list[str]


def run(input: Input) -> Output:
    words = re.findall(r"[a-z]+", Path(input.text).read_text(encoding="utf-8").lower())
    counts = Counter(word for word in words if len(word) >= input.letters)
    ranked = sorted(counts, key=lambda word: (-counts[word], word))
    return Output(words=len(words), distinct=len(set(words)), frequent=ranked[: input.top])
