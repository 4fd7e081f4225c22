"""The hints of a minefield, as the game shows them."""

from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "mine_hints",
    "description": "A minefield (* is a mine) with the number of mines around each other cell written into it, a dot where there is none; the field ends at its edges",
    "effects": ["read"],
    "dependencies": [],
}

AROUND = [(dy, dx) for dy in (-1, 0, 1) for dx in (-1, 0, 1) if dy or dx]


class Input(BaseModel):
    path: str


class Output(BaseModel):
    board: list[str]
    mines: int
    highest: int


def near(field: list[str], y: int, x: int) -> int:
    """How many of the eight cells around this one hold a mine."""
    height, width = len(field), len(field[0])
    places = [(y + dy, x + dx) for dy, dx in AROUND]
    return sum(field[py][px] == "*" for py, px in places if py < height and px < width)


def run(input: Input) -> Output:
    field = Path(input.path).read_text(encoding="utf-8").split()
    board, highest = [], 0
    for y, row in enumerate(field):
        shown = ""
        for x, cell in enumerate(row):
            count = near(field, y, x)
            if cell == "*":
                shown += "*"
                continue
            highest = max(highest, count)
            shown += str(count or ".")
        board.append(shown)
    return Output(board=board, mines=sum(row.count("*") for row in field), highest=highest)
