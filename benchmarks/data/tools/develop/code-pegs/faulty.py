"""Pegs for guesses of a code of colours."""

from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "code_pegs",
    "description": "Black and white pegs for the guesses of a game in which a row of colours has to be found",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="The code in the first line, a guess in each other; one letter for each colour")


class Output(BaseModel):
    black: list[int] = Field(description="Right colours in the right place")
    white: list[int] = Field(description="Further right colours")
    solved: int = Field(description="Number of the guess that found the code, or 0")


def white_pegs(code: str, guess: str) -> int:
    """Right colours in the wrong place; each colour of the code counts once."""
    white = 0
    for place, colour in enumerate(guess):
        if code[place] != colour and colour in code:
            white += 1
    return white


def run(input: Input) -> Output:
    lines = Path(input.path).read_text(encoding="utf-8").upper().split()
    if not lines:
        return Output(black=[], white=[], solved=0)
    code, guesses = lines[0], lines[1:]
    black = [sum(a == b for a, b in zip(code, guess)) for guess in guesses]
    white = [white_pegs(code, guess) for guess in guesses]
    solved = guesses.index(code) + 1 if code in guesses else 0
    return Output(black=black, white=white, solved=solved)
