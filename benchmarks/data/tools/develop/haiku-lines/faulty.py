"""Syllables of haiku."""

import re
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "haiku_lines",
    "description": "Count the syllables of the lines of haiku, and name those that are not 5, 7, 5",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="Poems of three lines, divided by empty lines")


class Output(BaseModel):
    counts: list[list[int]]
    wrong: list[int] = Field(description="Numbers of the poems that are none")


def syllables(word: str) -> int:
    """Groups of vowels; an e at the end is silent, but not in -le after a consonant, nor where it is alone."""
    groups = len(re.findall(r"[aeiouy]+", word))
    return max(groups, 1)


def line_count(line: str) -> int:
    return sum(syllables(word) for word in re.findall(r"[a-z]+", line.lower().replace("'", "")))


def run(input: Input) -> Output:
    counts: list[list[int]] = []
    fresh = True
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if not line.strip():
            fresh = True
            continue
        if fresh:
            counts.append([])
            fresh = False
        counts[-1].append(line_count(line))
    wrong = [number for number, poem in enumerate(counts, start=1) if poem != [5, 7, 5]]
    return Output(counts=counts, wrong=wrong)
