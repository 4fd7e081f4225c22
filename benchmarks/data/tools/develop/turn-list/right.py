"""Turns along a track."""

from pydantic import BaseModel

TOOL = {
    "name": "turn_list",
    "description": "The turns between the bearings of a track's legs, in degrees from -180 (not included) to 180, to the right above zero; and which of them are sharp",
    "effects": ["pure"],
    "dependencies": [],
}


class Input(BaseModel):
    bearings: list[int]
    sharp: int = 90


class Output(BaseModel):
    turns: list[int]
    words: list[str]
    sharp: list[int]


def turn(before: int, after: int) -> int:
    change = (after - before) % 360
    return change - 360 if change > 180 else change


def word(change: int) -> str:
    if change == 0:
        return "straight"
    if change == 180:
        return "back"
    return "right" if change > 0 else "left"


def run(input: Input) -> Output:
    """A turn is sharp from so many degrees on, to either side; sharp turns by their number from one."""
    pairs = zip(input.bearings, input.bearings[1:], strict=False)
    turns = [turn(before, after) for before, after in pairs]
    sharp = [number for number, change in enumerate(turns, 1) if abs(change) >= input.sharp]
    return Output(turns=turns, words=[word(change) for change in turns], sharp=sharp)
