"""Clocks of a game of chess with an increment for each move."""

from pydantic import BaseModel, Field

TOOL = {
    "name": "chess_clock",
    "description": "Time left on both clocks after the moves",
    "effects": ["pure"],
    "dependencies": [],
}


class Input(BaseModel):
    base_s: int = Field(gt=0)
    increment_s: int = Field(0, ge=0)
    moves_s: list[int] = Field(description="Seconds each move took, White's first")


class Output(BaseModel):
    white_s: int
    black_s: int
    flag: str = Field(description="Who ran out of time: white, black or empty")
    moves: int


class Clock:
    def __init__(self, seconds: int) -> None:
        self.left = {"white": seconds, "black": seconds}
        self.turn = "white"
        self.moves = 0

    def other(self) -> str:
        return "black" if self.turn == "white" else "white"

    def move(self, used: int, increment: int) -> bool:
        """Whether the player still had time; one who has not gets no increment."""
        self.left[self.turn] -= used
        if self.left[self.turn] <= 0:
            self.left[self.turn] = 0
            return False
        self.left[self.turn] += increment
        self.moves += 1
        self.turn = self.other()
        return True


def run(input: Input) -> Output:
    clock = Clock(input.base_s)
    flag = ""
    for used in input.moves_s:
        if not clock.move(used, input.increment_s):
            flag = clock.turn
            break
    return Output(white_s=clock.left["white"], black_s=clock.left["black"], flag=flag, moves=clock.moves)
