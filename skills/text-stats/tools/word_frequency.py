"""The most frequent words of a text file."""

import re
from collections import Counter
from pathlib import Path
from unicodedata import category, normalize

from pydantic import BaseModel, Field

TOOL = {
    "name": "word_frequency",
    "description": "Find the most frequent words of a text file, without regard to case",
    "effects": ["read"],
    "dependencies": [],
}

# Accents and vowel signs, of which no letter is made, belong to the letter before them.
MARKS = "".join(chr(code) for code in range(0x300, 0x10000) if category(chr(code)).startswith("M"))
LETTERS = rf"(?:[^\W_][{MARKS}]*)+"
WORD = re.compile(rf"{LETTERS}(?:['’-]{LETTERS})*")


class Input(BaseModel):
    path: str = Field(description="The text file, in the workspace")
    top: int = Field(10, ge=1, le=10_000, description="How many words to return")
    shortest: int = Field(1, ge=1, description="Leave out words of fewer characters")


class Word(BaseModel):
    word: str
    count: int


class Output(BaseModel):
    words: int = Field(description="All words that were counted")
    distinct: int
    top: list[Word] = Field(description="Most frequent first, then by alphabet")


def run(input: Input) -> Output:
    """Case is folded, so that "Straße" and "STRASSE" are one word; accents count alike, however they are written."""
    text = Path(input.path).read_text(encoding="utf-8-sig", errors="replace")
    text = normalize("NFC", text).casefold()
    counts = Counter(word for word in WORD.findall(text) if len(word) >= input.shortest)
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return Output(
        words=counts.total(),
        distinct=len(counts),
        top=[Word(word=word, count=count) for word, count in ordered[: input.top]],
    )
