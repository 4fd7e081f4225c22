"""Seats guests row by row."""

from collections.abc import Iterator

from pydantic import BaseModel, Field

TOOL = {
    "name": "seat_plan",
    "description": "Places guests on the seats of a hall",
    "effects": ["pure"],
    "dependencies": [],
}


class Input(BaseModel):
    rows: int = Field(gt=0)
    columns: int = Field(gt=0)
    names: list[str]
    taken: list[tuple[int, int]] = Field(default=[], description="Seats (row, column) that are not free, from zero")


class Output(BaseModel):
    seats: dict[str, str]
    waiting: list[str]


def free_seats(rows: int, columns: int, taken: set[tuple[int, int]]) -> Iterator[str]:
    """Names of the free seats: A1, A2, ..., B1, ..."""
    for row in range(rows):
        for column in range(columns):
            if (row, column) not in taken:
                yield f"{chr(ord('A') + row)}{column + 1}"


def run(input: Input) -> Output:
    seats: dict[str, str] = {}
    waiting: list[str] = []
    free = free_seats(input.columns, input.rows, set(input.taken))
    for name in input.names:
        seat = next(free, None)
        if seat is None:
            waiting.append(name)
        else:
            seats[name] = seat
    return Output(seats=seats, waiting=waiting)
