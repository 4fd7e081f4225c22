"""Pieces to be cut from boards."""

from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "timber_cuts",
    "description": "How boards of one length are cut into pieces, the longest first, each from the first board that has room",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="Lines: number x length in mm, as in 3 x 450")
    board: int = Field(2400, description="Length of a board in mm")
    saw: int = Field(3, description="Millimetres that are lost with each cut; the last piece may end where the board does")


class Output(BaseModel):
    boards: list[list[int]]
    waste: list[int] = Field(description="What is left of each board")


def pieces(path: str) -> list[int]:
    found: list[int] = []
    for line in Path(path).read_text(encoding="utf-8").splitlines():
        number, cross, length = line.lower().partition("x")
        if cross:
            found += [int(length)] * int(number)
    return sorted(found, reverse=True)


def run(input: Input) -> Output:
    boards: list[list[int]] = []
    room: list[int] = []
    for piece in pieces(input.path):
        if piece > input.board:
            raise ValueError(f"{piece} mm is longer than a board")
        if not room or room[-1] < piece:
            boards.append([])
            room.append(input.board)
        boards[-1].append(piece)
        room[-1] -= piece + input.saw
    return Output(boards=boards, waste=[max(left, 0) for left in room])
