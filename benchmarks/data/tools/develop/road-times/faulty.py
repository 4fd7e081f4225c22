"""The fastest way by road."""

import heapq
from collections import defaultdict

from pydantic import BaseModel

TOOL = {
    "name": "road_times",
    "description": "Fastest way between two places over roads that go both ways [from, to, minutes]: the places and the minutes, or null; of equally fast ones the way whose places come first in the alphabet",
    "effects": ["pure"],
    "dependencies": [],
}


class Input(BaseModel):
    roads: list[tuple[str, str, int]]
    start: str
    end: str


class Output(BaseModel):
    way: list[str]
    minutes: int | None
    places: int


def neighbours(roads: list[tuple[str, str, int]]) -> dict[str, list[tuple[str, int]]]:
    found: defaultdict[str, list[tuple[str, int]]] = defaultdict(list)
    for one, other, minutes in roads:
        found[one].append((other, minutes))
        found[other].append((one, minutes))
    return found


def run(input: Input) -> Output:
    near = neighbours(input.roads)
    done = {input.start}
    queue: list[tuple[int, list[str]]] = [(0, [input.start])]
    while queue:
        minutes, way = heapq.heappop(queue)
        place = way[-1]
        if place == input.end:
            return Output(way=way, minutes=minutes, places=len(way))
        for other, more in near.get(place, ()):
            if other not in done:
                done.add(other)
                heapq.heappush(queue, (minutes + more, [*way, other]))
    return Output(way=[], minutes=None, places=0)
