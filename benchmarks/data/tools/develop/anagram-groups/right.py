"""Groups words by their letters."""

from collections import defaultdict

from pydantic import BaseModel, Field

TOOL = {
    "name": "anagram_groups",
    "description": "Words that are made of the same letters",
    "effects": ["pure"],
    "dependencies": [],
}


class Input(BaseModel):
    words: list[str]
    least: int = Field(2, ge=1, description="Groups with fewer words are left out")


class Output(BaseModel):
    groups: list[list[str]]
    largest: int


def letters(word: str) -> str:
    return "".join(sorted(word))


def run(input: Input) -> Output:
    """Words in small letters, each once; groups by their first word."""
    by_letters: dict[str, set[str]] = defaultdict(set)
    for word in input.words:
        small = word.lower()
        by_letters[letters(small)].add(small)
    groups = sorted(sorted(words) for words in by_letters.values() if len(words) >= input.least)
    return Output(groups=groups, largest=max(map(len, groups), default=0))
