"""The span of time that a log covers."""

from datetime import datetime
from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "time_span",
    "description": "Seconds from the first to the last entry of a log, and the number of entries",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    log: str


class Output(BaseModel):
    seconds: int
    entries: int


def run(input: Input) -> Output:
    stamps = [
        datetime.fromisoformat(line[:19])
        for line in Path(input.log).read_text(encoding="utf-8").splitlines()
        if line.strip()
    ]
    if not stamps:
        return Output(seconds=0, entries=0)
    return Output(seconds=int((max(stamps) - min(stamps)).total_seconds()), entries=len(stamps))
