"""How long the tools of a workshop were lent."""

from datetime import datetime
from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "tool_loans",
    "description": "How many hours each tool of a workshop was lent by its log, the longest loan and who had it, and what is still out",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str


class Output(BaseModel):
    hours: dict[str, float]
    longest: float
    borrower: str
    out: list[str]
    unknown: int


def run(input: Input) -> Output:
    """Lines of the form DAY TIME out TOOL PERSON, or DAY TIME in TOOL."""
    lent: dict[str, tuple[datetime, str]] = {}
    hours: dict[str, float] = {}
    longest, borrower, unknown = 0.0, "", 0
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if not line.strip():
            continue
        day, clock, what, item, *person = line.split()
        when = datetime.strptime(f"{day} {clock}", "%Y-%m-%d %H:%M")
        if what == "out":
            lent[item] = (when, " ".join(person))
            continue
        if item not in lent:
            unknown += 1
            continue
        since, name = lent.pop(item)
        span = round((when - since).total_seconds() / 3600, 2)
        hours[item] = round(hours.get(item, 0.0) + span, 2)
        if span > longest:
            longest, borrower = span, name
    return Output(hours=hours, longest=longest, borrower=borrower, out=sorted(lent), unknown=unknown)
