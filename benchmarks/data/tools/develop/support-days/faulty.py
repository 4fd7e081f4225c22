"""Requests to a support desk by its own days."""

from datetime import datetime, timedelta, timezone
from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "support_days",
    "description": "How many requests came to a support desk on each day by the desk's own clock, how many of them came while it was open, and which way most took; the moments come from all over the world, each with the zone of the sender",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str
    offset: int
    opens: int = 8
    closes: int = 17


class Output(BaseModel):
    days: dict[str, int]
    open: int
    most: str | None


def run(input: Input) -> Output:
    """Lines: moment, way. ``offset``: the desk's minutes east of UTC; it is open from ``opens`` until before ``closes``."""
    desk = timezone(timedelta(minutes=input.offset))
    days: dict[str, int] = {}
    ways: dict[str, int] = {}
    open_hours = 0
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if not line.strip():
            continue
        written, way = line.split()
        moment = datetime.fromisoformat(written).replace(tzinfo=desk)
        day = moment.strftime("%Y-%m-%d")
        days[day] = days.get(day, 0) + 1
        ways[way] = ways.get(way, 0) + 1
        open_hours += input.opens <= moment.hour < input.closes
    most = min(ways, key=lambda way: (-ways[way], way), default=None)
    return Output(days=dict(sorted(days.items())), open=open_hours, most=most)
