"""Takes advertising out of a list of subjects."""

import re

from pydantic import BaseModel

TOOL = {
    "name": "spam_trim",
    "description": "Subjects of mails without those that hold one of some words (whole words, in any case), in their order, and how many were taken out",
    "effects": ["pure"],
    "dependencies": [],
}


class Input(BaseModel):
    subjects: list[str]
    words: list[str]


class Output(BaseModel):
    kept: list[str]
    removed: int
    shortest: str | None


def is_spam(subject: str, words: set[str]) -> bool:
    return not words.isdisjoint(re.findall(r"\w+", subject.lower()))


def run(input: Input) -> Output:
    words = {word.lower() for word in input.words}
    kept = list(input.subjects)
    for subject in list(kept):
        if is_spam(subject, words):
            kept.remove(subject)
    return Output(
        kept=kept,
        removed=len(input.subjects) - len(kept),
        shortest=min(kept, key=len, default=None),
    )
