"""Titles with capital letters."""

from pydantic import BaseModel

TOOL = {
    "name": "title_words",
    "description": "Write titles with capital letters: small words (a, the, of, and, to, ...) stay small unless they are the first or the last word or follow a colon",
    "effects": ["pure"],
    "dependencies": [],
}


SMALL = frozenset("a an and as at but by for in nor of on or the to with".split())


class Input(BaseModel):
    titles: list[str]


class Output(BaseModel):
    titles: list[str]
    changed: int


def capital(word: str) -> str:
    return "-".join(part[:1].upper() + part[1:] for part in word.split("-"))


def title(text: str) -> str:
    words = text.split()
    done: list[str] = []
    for number, word in enumerate(words):
        first = number == 0 or words[number - 1].endswith(":")
        last = number == len(words) - 1
        if word.lower() in SMALL and not (first or last):
            done.append(word.lower())
        else:
            done.append(capital(word))
    return " ".join(done)


def run(input: Input) -> Output:
    titles = [title(text) for text in input.titles]
    changed = sum(before != after for before, after in zip(input.titles, titles))
    return Output(titles=titles, changed=changed)
