"""Full rows of a board of falling blocks."""

from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "falling_rows",
    "description": "Clear the full rows of a board of falling blocks, and count the points for them",
    "effects": ["read"],
    "dependencies": [],
}

POINTS = {0: 0, 1: 40, 2: 100, 3: 300, 4: 1200}


class Input(BaseModel):
    path: str = Field(description="The board, from top to bottom; a point is an empty cell")
    level: int = Field(0, ge=0)


class Output(BaseModel):
    board: list[str]
    cleared: int
    points: int


def full(row: str) -> bool:
    return bool(row) and "." not in row


def run(input: Input) -> Output:
    """Empty rows come in at the top for those that are cleared."""
    text = Path(input.path).read_text(encoding="utf-8")
    board = [line.strip() for line in text.splitlines() if line.strip()]
    width = max(map(len, board), default=0)
    board = [row.ljust(width, ".") for row in board]
    left = [row for row in board if not full(row)]
    cleared = len(board) - len(left)
    board = ["." * width] * cleared + left
    points = POINTS.get(cleared, 1200) * (input.level + 1)
    return Output(board=board, cleared=cleared, points=points)
