"""Points of words laid with letter tiles."""

from pydantic import BaseModel, Field

TOOL = {
    "name": "word_tiles",
    "description": "Points of words on squares (2 and 3 for the letter, d and t for the word); small letters are blanks worth 0",
    "effects": ["pure"],
    "dependencies": [],
}

POINTS = {"AEIOULNSTR": 1, "DG": 2, "BCMP": 3, "FHVWY": 4, "K": 5, "JX": 8, "QZ": 10}
VALUE = {letter: value for letters, value in POINTS.items() for letter in letters}


class Input(BaseModel):
    plays: list[str] = Field(description="WORD:squares, one square a letter, a dot is a plain one")


class Output(BaseModel):
    points: list[int]
    best: str | None
    total: int


def score(word: str, squares: str) -> int:
    total, factor = 0, 1
    for letter, square in zip(word, squares, strict=True):
        value = 0 if letter.islower() else VALUE[letter]
        if square in "23":
            value *= int(square)
        elif square == "d":
            factor *= 2
        elif square == "t":
            factor *= 3
        total += value
    return total * factor + (50 if len(word) == 7 else 0)


def run(input: Input) -> Output:
    points = [score(*play.split(":")) for play in input.plays]
    best = None
    if points:
        best = input.plays[points.index(max(points))].split(":")[0].upper()
    return Output(points=points, best=best, total=sum(points))
