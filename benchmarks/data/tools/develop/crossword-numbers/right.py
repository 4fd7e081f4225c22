"""Numbers the words of a crossword."""

from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "crossword_numbers",
    "description": "Numbers of the words in a crossword's grid, across and down, with their lengths",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="Lines of the grid: # is a block, everything else a cell")
    least: int = Field(2, ge=2, description="Letters that make a word")


class Output(BaseModel):
    across: dict[str, int] = Field(description="Length of the word at each number")
    down: dict[str, int]
    cells: int


def length(grid: list[str], y: int, x: int, step_y: int, step_x: int) -> int:
    """How many open cells follow each other from a place in a direction, the first one included."""
    count = 0
    while 0 <= y < len(grid) and 0 <= x < len(grid[y]) and grid[y][x] != "#":
        count += 1
        y, x = y + step_y, x + step_x
    return count


def run(input: Input) -> Output:
    lines = Path(input.path).read_text(encoding="utf-8").splitlines()
    grid = [line.strip() for line in lines if line.strip()]
    across: dict[str, int] = {}
    down: dict[str, int] = {}
    number = 0
    for y, row in enumerate(grid):
        for x, cell in enumerate(row):
            if cell == "#":
                continue
            wide = length(grid, y, x, 0, 1) if length(grid, y, x - 1, 0, 1) == 0 else 0
            high = length(grid, y, x, 1, 0) if length(grid, y - 1, x, 1, 0) == 0 else 0
            if wide < input.least and high < input.least:
                continue
            number += 1
            if wide >= input.least:
                across[str(number)] = wide
            if high >= input.least:
                down[str(number)] = high
    return Output(across=across, down=down, cells=sum(row.count("#") * -1 + len(row) for row in grid))
