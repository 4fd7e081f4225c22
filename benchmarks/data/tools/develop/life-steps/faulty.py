"""Conway's game of life on a board with edges."""

from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "life_steps",
    "description": "A board of Conway's game of life (# lives) after some steps, in which all cells change at once, cells beyond the edge are dead, and how many live",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str
    steps: int = Field(1, ge=0)


class Output(BaseModel):
    board: list[str]
    alive: int


Board = list[list[bool]]


def lives(board: Board, y: int, x: int) -> bool:
    count = 0
    for row in range(max(0, y - 1), min(len(board), y + 2)):
        for column in range(max(0, x - 1), min(len(board[row]), x + 2)):
            if (row, column) != (y, x) and board[row][column]:
                count += 1
    return count == 3 or (count == 2 and board[y][x])


def step(board: Board) -> Board:
    for y, row in enumerate(board):
        for x in range(len(row)):
            row[x] = lives(board, y, x)
    return board


def run(input: Input) -> Output:
    lines = Path(input.path).read_text(encoding="utf-8").split()
    board = [[sign == "#" for sign in line] for line in lines]
    for _ in range(input.steps):
        board = step(board)
    shown = ["".join("#" if cell else "." for cell in row) for row in board]
    return Output(board=shown, alive=sum(map(sum, board)))
