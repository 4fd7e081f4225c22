"""From when to when a log reaches, and where it is silent."""

from datetime import UTC, datetime
from itertools import pairwise

from _entries import entries
from pydantic import BaseModel, Field

TOOL = {
    "name": "log_span",
    "description": "First and last time in a log, the seconds between them, and the longest silence",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="The log file, in the workspace")
    year: int = Field(2000, ge=1970, le=9999, description="For logs whose dates have no year")


class Output(BaseModel):
    entries: int
    first: str | None = Field(description="ISO date in UTC; null in a log without dates")
    last: str | None
    seconds: float
    longest_silence: float = Field(description="Seconds between two neighbouring times")


def run(input: Input) -> Output:
    """Entries need not be in order: threads and rotated files mix them."""
    times = sorted(entry.time for entry in entries(input.path, input.year))
    if not times:
        return Output(entries=0, first=None, last=None, seconds=0, longest_silence=0)
    return Output(
        entries=len(times),
        first=utc(times[0]),
        last=utc(times[-1]),
        seconds=(times[-1] - times[0]).total_seconds(),
        longest_silence=max(
            ((later - earlier).total_seconds() for earlier, later in pairwise(times)), default=0.0
        ),
    )


def utc(time: datetime) -> str:
    """The usual short form."""
    return time.astimezone(UTC).isoformat().replace("+00:00", "Z")
