"""Points of throws of dice."""

from collections import Counter

from pydantic import BaseModel

TOOL = {
    "name": "farkle_score",
    "description": "Scores throws of dice in the game Farkle: 1 and 5 singly 100 and 50, three alike the hundredfold of their eyes (three ones 1000), each further one alike doubles that, 1 to 6 all different 1500",
    "effects": ["pure"],
    "dependencies": [],
}

SINGLE = {1: 100, 5: 50}


class Input(BaseModel):
    throws: list[list[int]]


class Output(BaseModel):
    points: list[int]
    total: int
    farkles: int


def score(dice: list[int]) -> int:
    counts = Counter(dice)
    if len(counts) == 6:
        return 1500
    points = 0
    for face, number in counts.items():
        if number >= 3:
            base = face * 100
            points += base * 2 ** (number - 3)
        else:
            points += SINGLE.get(face, 0) * number
    return points


def run(input: Input) -> Output:
    """A farkle is a throw without points; after three of them in a row 1000 points are lost."""
    points = [score(dice) for dice in input.throws]
    lost = in_a_row = 0
    for value in points:
        in_a_row = in_a_row + 1 if value == 0 else 0
        if in_a_row == 3:
            lost += 1000
            in_a_row = 0
    return Output(points=points, total=sum(points) - lost, farkles=points.count(0))
