"""Cycle times from the log of a board."""

from datetime import date
from pathlib import Path
from statistics import median

from pydantic import BaseModel

TOOL = {
    "name": "ticket_cycle",
    "description": "Days from the first doing to the last done of each ticket; a ticket that was opened again and not closed is open",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str


class Output(BaseModel):
    days: dict[str, int]
    median: float | None
    open: list[str]


def run(input: Input) -> Output:
    started: dict[str, date] = {}
    ended: dict[str, date] = {}
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if not line.strip():
            continue
        day, ticket, state = line.split()
        when = date.fromisoformat(day)
        if state == "doing":
            started.setdefault(ticket, when)
        elif state == "done":
            ended.setdefault(ticket, when)
    days = {ticket: (end - started.get(ticket, end)).days for ticket, end in ended.items()}
    return Output(
        days=dict(sorted(days.items())),
        median=median(days.values()) if days else None,
        open=sorted(set(started) - set(ended)),
    )
