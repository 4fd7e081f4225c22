"""When messages came in."""

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "inbox_days",
    "description": "How many messages were sent on each day by the sender's clock, which was sent first and which last, and how many hours lie between them, from the Date lines of messages; those from before a day (of UTC) are only counted",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str
    since: str = "2026-01-01"


class Output(BaseModel):
    days: dict[str, int]
    first: str | None
    last: str | None
    hours: float
    older: int


def run(input: Input) -> Output:
    """Lines: the name of a message, a tab, its Date. A zone of -0000 means UTC, from a place that is not told."""
    since = datetime.fromisoformat(input.since).replace(tzinfo=UTC)
    sent: list[tuple[datetime, str]] = []
    older = 0
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        name, _, date = line.partition("\t")
        if not date.strip():
            continue
        said = parsedate_to_datetime(date.strip())
        moment = said if said.tzinfo else said.replace(tzinfo=UTC)
        if moment < since:
            older += 1
        else:
            sent.append((moment, name))
    sent.sort(key=lambda message: message[0])
    days: dict[str, int] = {}
    for moment, _ in sent:
        day = moment.date().isoformat()
        days[day] = days.get(day, 0) + 1
    span = sent[-1][0] - sent[0][0] if sent else None
    return Output(
        days=days,
        first=sent[0][1] if sent else None,
        last=sent[-1][1] if sent else None,
        hours=round(span.total_seconds() / 3600, 2) if span else 0.0,
        older=older,
    )
