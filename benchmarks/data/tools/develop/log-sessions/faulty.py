"""Sessions of visitors."""

from datetime import datetime, timedelta
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "log_sessions",
    "description": "Visits of a web log gathered into sessions, which end with a pause of more than some minutes",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="Lines of time, visitor and page, in the order of time")
    pause: int = Field(30, description="Minutes without a hit after which the next one begins a session")


class Output(BaseModel):
    sessions: dict[str, int]
    longest: int = Field(description="Hits of the longest session")
    single: int = Field(description="Sessions of one hit only")


def run(input: Input) -> Output:
    limit = timedelta(minutes=input.pause)
    last: dict[str, datetime] = {}
    hits: dict[str, list[int]] = {}
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if not line.strip():
            continue
        stamp, visitor, _ = line.split(maxsplit=2)
        when = datetime.fromisoformat(stamp)
        if visitor not in last or when - last[visitor] > limit:
            hits.setdefault(visitor, []).append(0)
        hits[visitor][-1] += 1
        last.setdefault(visitor, when)
    every = [count for counts in hits.values() for count in counts]
    return Output(
        sessions={visitor: len(counts) for visitor, counts in sorted(hits.items())},
        longest=max(every, default=0),
        single=every.count(1),
    )
