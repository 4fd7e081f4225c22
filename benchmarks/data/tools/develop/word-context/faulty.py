"""A word in its context."""

import string
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "word_context",
    "description": "Find a word (capitals and punctuation do not matter) in a text's lines, with up to so many words of the same line before and after it",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str
    word: str
    around: int = Field(3, ge=0)


class Hit(BaseModel):
    line: int
    before: str
    word: str
    after: str


class Output(BaseModel):
    hits: list[Hit]
    lines: int


def bare(word: str) -> str:
    return word.strip(string.punctuation).casefold()


def run(input: Input) -> Output:
    wanted = bare(input.word)
    hits = []
    for number, line in enumerate(Path(input.path).read_text(encoding="utf-8").splitlines(), start=1):
        words = line.split()
        for place, word in enumerate(words):
            if bare(word) != wanted:
                continue
            before = words[place - input.around : place]
            after = words[place + 1 : place + 1 + input.around]
            hits.append(Hit(line=number, before=" ".join(before), word=word, after=" ".join(after)))
    return Output(hits=hits, lines=len({hit.line for hit in hits}))
