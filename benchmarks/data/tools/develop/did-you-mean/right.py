"""Suggestions for a mistyped word."""

from pydantic import BaseModel, Field

TOOL = {
    "name": "did_you_mean",
    "description": "Known words that a mistyped one may mean: those with the fewest changes (a letter put in, taken out or exchanged for another is one change), at most so many; sorted, with their number of changes",
    "effects": ["pure"],
    "dependencies": [],
}


class Input(BaseModel):
    word: str
    known: list[str]
    most: int = Field(2, ge=0)


class Output(BaseModel):
    suggestions: list[str]
    changes: int | None


def distance(one: str, other: str) -> int:
    """Levenshtein's distance, row by row."""
    row = list(range(len(other) + 1))
    for number, letter in enumerate(one, start=1):
        above, row = row, [number]
        for column, sign in enumerate(other, start=1):
            exchange = above[column - 1] + (letter != sign)
            row.append(min(above[column] + 1, row[column - 1] + 1, exchange))
    return row[-1]


def run(input: Input) -> Output:
    word = input.word.strip().lower()
    distances = {known: distance(word, known.lower()) for known in input.known}
    fewest = min(distances.values(), default=None)
    if fewest is None or fewest > input.most:
        return Output(suggestions=[], changes=None)
    best = sorted(known for known, changes in distances.items() if changes == fewest)
    return Output(suggestions=best, changes=fewest)
