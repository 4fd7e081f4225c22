"""Material in chess positions."""

from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "fen_material",
    "description": "Count the material of both sides in chess positions given as FEN",
    "effects": ["read"],
    "dependencies": [],
}

VALUES = {"p": 1, "n": 3, "b": 3, "r": 5, "q": 9}


class Input(BaseModel):
    path: str = Field(description="One FEN a line; only its first field is read")


class Output(BaseModel):
    balance: list[int] = Field(description="White's material less black's")
    white: list[int]
    bare: int = Field(description="Positions in which one side has nothing but its king and pawns")


def run(input: Input) -> Output:
    balance, whites, bare = [], [], 0
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if not line.strip():
            continue
        board = line.split()[0]
        white = sum(VALUES.get(sign.lower(), 0) for sign in board if sign.isupper())
        black = sum(VALUES.get(sign.lower(), 0) for sign in board if sign.islower())
        pieces = [sign for sign in board if sign.lower() in "nbrq"]
        sides = {sign for sign in pieces}
        balance.append(white - black)
        whites.append(white)
        bare += len(sides) < 2
    return Output(balance=balance, white=whites, bare=bare)
