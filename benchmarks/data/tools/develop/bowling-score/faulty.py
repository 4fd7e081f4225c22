"""Scores a game of ten-pin bowling."""

from pydantic import BaseModel, Field

TOOL = {
    "name": "bowling_score",
    "description": "Score of a game of bowling by frames",
    "effects": ["pure"],
    "dependencies": [],
}

FRAMES = 10
PINS = 10


class Input(BaseModel):
    rolls: list[int] = Field(description="Pins of each ball, a whole game")


class Output(BaseModel):
    frames: list[int] = Field(description="The score after each frame")
    total: int
    strikes: int


def frame(rolls: list[int], at: int) -> tuple[int, int]:
    """Points of the frame that begins here, and how many balls it takes.

    A strike counts the next two balls as well, a spare the next one.
    """
    if rolls[at] == PINS:
        return PINS + rolls[at + 1], 1
    pins = rolls[at] + rolls[at + 1]
    if pins == PINS:
        return pins + rolls[at + 2], 2
    return pins, 2


def run(input: Input) -> Output:
    scores: list[int] = []
    at = total = strikes = 0
    for _ in range(FRAMES):
        points, balls = frame(input.rolls, at)
        strikes += balls == 1
        total += points
        scores.append(total)
        at += balls
    return Output(frames=scores, total=total, strikes=strikes)
