"""Grid of attendances."""

from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "attendance_grid",
    "description": "A grid of how often each person came in each week, from lines with a name and the number of a week, and who never came",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str
    people: list[str]
    weeks: int


class Output(BaseModel):
    grid: list[list[int]]
    never: list[str]
    outside: int


def run(input: Input) -> Output:
    """A row for each person in the given order, a column for each week from 1 on; other names and weeks are outside."""
    grid = [[0] * input.weeks for _ in input.people]
    rows = {name: number for number, name in enumerate(input.people)}
    outside = 0
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if not line.strip():
            continue
        name, text = line.rsplit(maxsplit=1)
        week = int(text)
        if name.strip() not in rows or not 1 <= week <= input.weeks:
            outside += 1
            continue
        grid[rows[name.strip()]][week - 1] += 1
    never = [name for name in input.people if not any(grid[rows[name]])]
    return Output(grid=grid, never=never, outside=outside)
