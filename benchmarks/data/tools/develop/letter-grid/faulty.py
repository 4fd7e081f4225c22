"""Words in a grid of letters."""

from pydantic import BaseModel

TOOL = {
    "name": "letter_grid",
    "description": "Words that can be spelled on a grid by going to neighbouring cells (also diagonal), no cell twice in a word; and their points (1 for 3 or 4 letters, then one more for each letter)",
    "effects": ["pure"],
    "dependencies": [],
}


class Input(BaseModel):
    grid: list[str]
    words: list[str]


class Output(BaseModel):
    found: list[str]
    points: int


def neighbours(x: int, y: int) -> set[tuple[int, int]]:
    return {(x + dx, y + dy) for dx in (-1, 0, 1) for dy in (-1, 0, 1)} - {(x, y)}


class Grid:
    def __init__(self, rows: list[str]) -> None:
        self.letters = {(x, y): letter for y, row in enumerate(rows) for x, letter in enumerate(row)}

    def spells(self, word: str) -> bool:
        return any(self.goes_on(word, cell, frozenset()) for cell in self.letters)

    def goes_on(self, word: str, cell: tuple[int, int], used: frozenset[tuple[int, int]]) -> bool:
        if cell in used or self.letters.get(cell) != word[0]:
            return False
        if len(word) == 1:
            return True
        return any(self.goes_on(word[1:], near, used) for near in neighbours(*cell))


def run(input: Input) -> Output:
    grid = Grid([row.lower() for row in input.grid])
    found = [word for word in input.words if len(word) >= 3 and grid.spells(word.lower())]
    points = sum(max(len(word) - 3, 1) for word in found)
    return Output(found=found, points=points)
