"""Finds four in a row."""

from collections import Counter

from pydantic import BaseModel

TOOL = {
    "name": "connect_four",
    "description": "Winner of a game of four in a row (x, o or nobody; rows from the top), the number of winning lines of four, and the stones of each side",
    "effects": ["pure"],
    "dependencies": [],
}


STEPS = [(1, 0), (0, 1), (1, 1)]


class Input(BaseModel):
    rows: list[str]


class Output(BaseModel):
    winner: str | None
    lines: int
    stones: dict[str, int]


class Board:
    def __init__(self, rows: list[str]) -> None:
        self.cells = {
            (x, y): stone for y, row in enumerate(rows) for x, stone in enumerate(row) if stone != "."
        }

    def lines(self) -> list[str]:
        """The stone of each line of four."""
        found = []
        for (x, y), stone in self.cells.items():
            for dx, dy in STEPS:
                if all(self.cells.get((x + n * dx, y + n * dy)) == stone for n in range(4)):
                    found.append(stone)
        return found


def run(input: Input) -> Output:
    board = Board(input.rows)
    lines = board.lines()
    stones = Counter(board.cells.values())
    return Output(winner=lines[0] if lines else None, lines=len(lines), stones=dict(sorted(stones.items())))
