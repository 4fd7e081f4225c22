"""Who has won on a board of noughts and crosses."""

from pydantic import BaseModel, Field

TOOL = {
    "name": "noughts_crosses",
    "description": "State of a game of noughts and crosses",
    "effects": ["pure"],
    "dependencies": [],
}


class Input(BaseModel):
    board: list[str] = Field(min_length=3, max_length=3, description="Three rows of X, O and . (free)")


class Output(BaseModel):
    winner: str = Field(description="X, O, both, or empty")
    free: int
    full: bool


def lines(board: list[str]) -> list[str]:
    """Rows, columns and both diagonals."""
    columns = ["".join(column) for column in zip(*board)]
    falling = "".join(board[i][i] for i in range(3))
    rising = "".join(board[i][i - 2] for i in range(3))
    return [*board, *columns, falling, rising]


def run(input: Input) -> Output:
    board = [row.upper() for row in input.board]
    winners = [player for player in "XO" if player * 3 in lines(board)]
    winner = "both" if len(winners) == 2 else "".join(winners)
    free = sum(row.count(".") for row in board)
    return Output(winner=winner, free=free, full=free == 0)
