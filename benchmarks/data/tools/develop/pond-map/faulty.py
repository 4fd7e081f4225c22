"""Ponds of a map."""

from pydantic import BaseModel

TOOL = {
    "name": "pond_map",
    "description": "Sizes of the ponds of a map (~ is water; squares that share a side belong together; rows of the same length), the largest first, and how many touch the edge of the map",
    "effects": ["pure"],
    "dependencies": [],
}


class Input(BaseModel):
    rows: list[str]


class Output(BaseModel):
    sizes: list[int]
    at_edge: int
    water: int


class Map:
    def __init__(self, rows: list[str]) -> None:
        self.rows = rows
        self.seen: set[tuple[int, int]] = set()

    def water(self, x: int, y: int) -> bool:
        return y < len(self.rows) and x < len(self.rows[y]) and self.rows[y][x] == "~"

    def pond(self, x: int, y: int) -> list[tuple[int, int]]:
        if not self.water(x, y) or (x, y) in self.seen:
            return []
        self.seen.add((x, y))
        found = [(x, y)]
        for dx, dy in ((1, 0), (-1, 0), (0, 1), (0, -1)):
            found += self.pond(x + dx, y + dy)
        return found


def run(input: Input) -> Output:
    area = Map(input.rows)
    height = len(input.rows)
    ponds = [area.pond(x, y) for y in range(height) for x in range(len(input.rows[y]))]
    ponds = [pond for pond in ponds if pond]
    edge = sum(
        any(x in (0, len(input.rows[y]) - 1) or y in (0, height - 1) for x, y in pond) for pond in ponds
    )
    sizes = sorted(map(len, ponds), reverse=True)
    return Output(sizes=sizes, at_edge=edge, water=sum(sizes))
