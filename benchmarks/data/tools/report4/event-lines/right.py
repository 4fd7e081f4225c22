"""Events of a JSON lines file."""

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "event_lines",
    "description": "Events of a file with one JSON object a line; lines that are broken or have no event are counted apart",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="One object a line: event, perhaps ms")
    slow: int = Field(500, description="Milliseconds from which on an event is slow")


class Output(BaseModel):
    events: dict[str, int]
    slow: int
    skipped: int


def parsed(lines: Iterable[str]) -> tuple[list[tuple[str, int]], int]:
    """The events with their milliseconds, 0 where there are none; and how many lines were skipped."""
    found, skipped = [], 0
    for line in lines:
        if not line.strip():
            continue
        try:
            entry = json.loads(line)
            found.append((entry["event"], entry.get("ms", 0)))
        except (KeyError, json.JSONDecodeError):
            skipped += 1
    return found, skipped


def run(input: Input) -> Output:
    events, skipped = parsed(Path(input.path).read_text(encoding="utf-8").splitlines())
    counts = Counter(event for event, _ in events)
    return Output(events=dict(counts), slow=sum(ms >= input.slow for _, ms in events), skipped=skipped)
