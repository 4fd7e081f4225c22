"""Entries of a log by level."""

from _entries import entries
from pydantic import BaseModel, Field

TOOL = {
    "name": "level_counts",
    "description": "Count the entries of a log by level: debug, info, warning, error, critical",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="The log file, in the workspace")
    year: int = Field(2000, ge=1970, le=9999, description="For logs whose dates have no year")


class Output(BaseModel):
    entries: int
    debug: int
    info: int
    warning: int
    error: int
    critical: int
    none: int = Field(description="Entries that name no level")
    continued: int = Field(description="Lines that belong to the entry before them")


def run(input: Input) -> Output:
    """Other names of a level count as the usual one: fatal is critical, notice is info."""
    counts = dict.fromkeys(("debug", "info", "warning", "error", "critical", "none"), 0)
    total = continued = 0
    for entry in entries(input.path, input.year):
        total += 1
        continued += entry.more
        counts[entry.level or "none"] += 1
    return Output(entries=total, continued=continued, **counts)
