"""Shortest ways through mazes."""

from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "maze_steps",
    "description": "The fewest steps from S to E in mazes drawn with # for walls",
    "effects": ["read"],
    "dependencies": [],
}

STEPS = ((0, 1), (1, 0), (0, -1), (-1, 0))


class Input(BaseModel):
    path: str = Field(description="Drawings of mazes, divided by empty lines; what is no # may be walked on")


class Output(BaseModel):
    steps: list[int] = Field(description="-1 where there is no way, or no S")
    longest: int


def shortest(maze: list[str]) -> int:
    cells = {(y, x): sign for y, row in enumerate(maze) for x, sign in enumerate(row) if sign != "#"}
    todo = [(place, 0) for place, sign in cells.items() if sign == "S"]
    seen = {place for place, _ in todo}
    while todo:
        (y, x), steps = todo.pop()
        if cells[y, x] == "E":
            return steps
        for down, right in STEPS:
            place = (y + down, x + right)
            if place in cells and place not in seen:
                seen.add(place)
                todo.append((place, steps + 1))
    return -1


def run(input: Input) -> Output:
    mazes: list[list[str]] = [[]]
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if line.strip():
            mazes[-1].append(line)
        elif mazes[-1]:
            mazes.append([])
    steps = [shortest(maze) for maze in mazes if maze]
    return Output(steps=steps, longest=max(steps, default=-1))
