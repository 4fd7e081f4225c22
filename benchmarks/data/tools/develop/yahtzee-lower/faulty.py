"""The lower section of a Yahtzee sheet."""

from collections import Counter

from pydantic import BaseModel, Field

TOOL = {
    "name": "yahtzee_lower",
    "description": "What five dice bring in each box of the lower section that is not used yet: three or four of a kind (the sum of all dice), full house (two of one and three of another, 25), small straight (four in a row among them, 30), large straight (five in a row, 40), yahtzee (five equal, 50), chance (the sum); and the best box, the first by name of equals",
    "effects": ["pure"],
    "dependencies": [],
}


class Input(BaseModel):
    dice: list[int] = Field(min_length=5, max_length=5)
    used: list[str] = []


class Output(BaseModel):
    points: dict[str, int]
    best: str | None


def in_a_row(dice: list[int], length: int) -> bool:
    faces = "".join(map(str, sorted(dice)))
    return any(faces[start : start + length] in "123456" for start in range(len(faces) - length + 1))


def run(input: Input) -> Output:
    if not all(1 <= die <= 6 for die in input.dice):
        raise ValueError("a die shows 1 to 6")
    counts = sorted(Counter(input.dice).values())
    total = sum(input.dice)
    points = {
        "three of a kind": total if counts[-1] >= 3 else 0,
        "four of a kind": total if counts[-1] >= 4 else 0,
        "full house": 25 if counts == [2, 3] else 0,
        "small straight": 30 if in_a_row(input.dice, 4) else 0,
        "large straight": 40 if in_a_row(input.dice, 5) else 0,
        "yahtzee": 50 if counts == [5] else 0,
        "chance": total,
    }
    left = {box: value for box, value in points.items() if box not in input.used}
    return Output(points=left, best=max(sorted(left), key=lambda box: left[box], default=None))
