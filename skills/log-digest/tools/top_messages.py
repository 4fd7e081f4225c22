"""The most frequent messages of a log."""

import re
from collections import Counter
from typing import Literal

from _entries import entries
from pydantic import BaseModel, Field

TOOL = {
    "name": "top_messages",
    "description": "Find the most frequent messages of a log, numbers and ids replaced by #",
    "effects": ["read"],
    "dependencies": [],
}

VARIABLE = re.compile(
    r"0x[0-9a-fA-F]+|\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|\b(?=[a-f]*\d)[0-9a-f]{12,}\b|\d+(?:[.:]\d+)*"
)


class Input(BaseModel):
    path: str = Field(description="The log file, in the workspace")
    level: Literal["debug", "info", "warning", "error", "critical"] | None = Field(
        None, description="Only entries of this level; without it, all"
    )
    top: int = Field(5, ge=1, le=1_000)
    year: int = Field(2000, ge=1970, le=9999, description="For logs whose dates have no year")


class Message(BaseModel):
    message: str
    count: int


class Output(BaseModel):
    entries: int = Field(description="Entries of the level asked for")
    distinct: int
    top: list[Message] = Field(description="Most frequent first, then by alphabet")


def run(input: Input) -> Output:
    """Only the first line of an entry is its message."""
    counts = Counter(
        VARIABLE.sub("#", entry.message).strip()
        for entry in entries(input.path, input.year)
        if input.level in (None, entry.level)
    )
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return Output(
        entries=counts.total(),
        distinct=len(counts),
        top=[Message(message=message, count=count) for message, count in ordered[: input.top]],
    )
