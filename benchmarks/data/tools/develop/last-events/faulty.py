"""A ring of the last events."""

from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "last_events",
    "description": "The last events of a log, oldest first, kept in a ring of a given size; debug lines are not kept; how many fell out, and how often each level occurs among the kept ones",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str
    size: int = Field(5, gt=0)


class Output(BaseModel):
    events: list[str]
    dropped: int
    levels: dict[str, int]


class Ring:
    def __init__(self, size: int) -> None:
        self.slots = [""] * size
        self.count = 0

    def put(self, event: str) -> None:
        self.slots[self.count % len(self.slots)] = event
        self.count += 1

    def kept(self) -> list[str]:
        size = len(self.slots)
        first = self.count % size
        return [self.slots[(first + step) % size] for step in range(min(self.count, size))]


def run(input: Input) -> Output:
    """Lines: level, event."""
    ring = Ring(input.size)
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if line.strip() and not line.startswith("debug"):
            ring.put(line.strip())
    events = ring.kept()
    names = [event.split()[0] for event in events if event]
    levels = {level: names.count(level) for level in sorted(set(names))}
    return Output(events=events, dropped=max(0, ring.count - input.size), levels=levels)
