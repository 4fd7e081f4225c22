"""A trace of a cache that drops the least recently used entry."""

from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "cache_trace",
    "description": "Hits and misses of a cache that drops what was used least recently, and what is left in it",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="Keys, divided by spaces or line breaks; -key removes one from the cache")
    size: int = Field(3, ge=1)


class Output(BaseModel):
    hits: int
    misses: int
    dropped: list[str]
    left: list[str] = Field(description="The least recently used first")


def run(input: Input) -> Output:
    cache: dict[str, int] = {}
    hits = misses = 0
    dropped = []
    for key in Path(input.path).read_text(encoding="utf-8").split():
        if key.startswith("-"):
            cache.pop(key[1:], None)
            continue
        if key in cache:
            hits += 1
            cache[key] = cache.pop(key) + 1
            continue
        misses += 1
        if len(cache) >= input.size:
            oldest = next(iter(cache))
            del cache[oldest]
            dropped.append(oldest)
        cache[key] = 1
    return Output(hits=hits, misses=misses, dropped=dropped, left=list(cache))
