"""The cheapest way over roads with tolls."""

import heapq
from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "cheapest_route",
    "description": "The cheapest way between two towns over roads with tolls (usable in both directions), what it costs, and its stops",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str
    start: str
    goal: str


class Output(BaseModel):
    cost: int | None
    stops: list[str]
    reached: int


def run(input: Input) -> Output:
    """Roads: town town toll."""
    roads: dict[str, list[tuple[str, int]]] = {}
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if line.strip():
            one, other, toll = line.split()
            roads.setdefault(one, []).append((other, int(toll)))
            roads.setdefault(other, []).append((one, int(toll)))
    best = {input.start: 0}
    before: dict[str, str] = {}
    queue = [(0, input.start)]
    while queue:
        cost, town = heapq.heappop(queue)
        if cost > best[town]:
            continue
        for to, toll in roads.get(town, []):
            total = cost + toll
            if to not in best or total < best[to]:
                best[to] = total
                before[to] = town
                heapq.heappush(queue, (total, to))
    stops = [input.goal] if input.goal in best else []
    while stops and stops[0] != input.start:
        stops.insert(0, before[stops[0]])
    return Output(cost=best.get(input.goal), stops=stops, reached=len(best))
