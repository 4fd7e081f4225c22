"""Free seats next to each other."""

from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "adjacent_seats",
    "description": "Where in the rows of a theatre a party finds free seats next to each other",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="Lines: row and its seats, as in: A ..x.._..; x is taken, _ an aisle")
    party: int = Field(2, ge=1)


class Output(BaseModel):
    places: list[str] = Field(description="Row and first seat of the longest stretch of each row that is long enough")
    free: int


def stretches(seats: str) -> list[tuple[int, int]]:
    """Length and number of the first seat; an aisle has no number, and parts a stretch."""
    found: list[tuple[int, int]] = []
    number = length = 0
    for sign in seats:
        if sign == ".":
            length += 1
        elif length:
            found.append((length, number - length + 1))
            length = 0
        if sign != "_":
            number += 1
    return found


def run(input: Input) -> Output:
    places = []
    free = 0
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if not line.strip():
            continue
        row, seats = line.split()
        found = stretches(seats)
        free += seats.count(".")
        longest = max(found, key=lambda one: one[0], default=(0, 0))
        if longest[0] >= input.party:
            places.append(f"{row}{longest[1]}")
    return Output(places=places, free=free)
