"""A cache of bounded size, replayed from a list of operations."""

from collections import OrderedDict
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "cache_replay",
    "description": "Contents, hits, misses and dropped keys of a cache that drops the key not used for longest, from lines: put KEY VALUE, get KEY, del KEY, size N",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="One operation a line")
    size: int = Field(default=3, ge=1, description="How many keys fit")


class Output(BaseModel):
    contents: dict[str, str]
    hits: int
    misses: int
    dropped: list[str]


class Cache:
    """Keys in the order of their last use."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.items: OrderedDict[str, str] = OrderedDict()
        self.hits = 0
        self.misses = 0
        self.dropped: list[str] = []

    def get(self, key: str) -> str | None:
        if key not in self.items:
            self.misses += 1
            return None
        self.hits += 1
        self.items.move_to_end(key)
        return self.items[key]

    def put(self, key: str, value: str) -> None:
        if len(self.items) >= self.size:
            self.drop()
        self.items[key] = value
        self.items.move_to_end(key)

    def drop(self) -> None:
        key, _ = self.items.popitem(last=False)
        self.dropped.append(key)

    def resize(self, size: int) -> None:
        self.size = size
        while len(self.items) > size:
            self.drop()


def run(input: Input) -> Output:
    cache = Cache(input.size)
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        operation, *rest = line.split(maxsplit=2) or [""]
        if operation == "put":
            cache.put(rest[0], rest[1])
        elif operation == "get":
            cache.get(rest[0])
        elif operation == "del":
            cache.items.pop(rest[0], None)
        elif operation == "size":
            cache.resize(int(rest[0]))
    return Output(contents=dict(cache.items), hits=cache.hits, misses=cache.misses, dropped=cache.dropped)
