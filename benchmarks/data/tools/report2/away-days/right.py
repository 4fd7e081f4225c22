"""Days of a calendar on which somebody is away."""

from collections.abc import Iterator
from datetime import date, datetime, timedelta
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "away_days",
    "description": "The days of a calendar file that its events cover, by what they are called, and how many different days that are; an event of whole days ends before its DTEND, as the format says, and one with times covers the day of its end",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="A calendar: lines of the form NAME:value between BEGIN:VEVENT and END:VEVENT")


class Output(BaseModel):
    days: dict[str, int]
    different: int


def events(path: str) -> Iterator[dict[str, str]]:
    event: dict[str, str] = {}
    for line in Path(path).read_text(encoding="utf-8").splitlines():
        name, _, value = line.partition(":")
        if line == "BEGIN:VEVENT":
            event = {}
        elif line == "END:VEVENT":
            yield event
        else:
            event[name] = value


def span(event: dict[str, str]) -> tuple[date, date]:
    """The first and the last day."""
    if "DTSTART" in event:
        first, last = (datetime.strptime(event[name], "%Y%m%dT%H%M").date() for name in ("DTSTART", "DTEND"))
        return first, last
    first = datetime.strptime(event["DTSTART;VALUE=DATE"], "%Y%m%d").date()
    if "DTEND;VALUE=DATE" not in event:
        return first, first
    end = datetime.strptime(event["DTEND;VALUE=DATE"], "%Y%m%d").date()
    return first, end - timedelta(days=1)


def run(input: Input) -> Output:
    days: dict[str, set[date]] = {}
    for event in events(input.path):
        first, last = span(event)
        for number in range((last - first).days + 1):
            days.setdefault(event.get("SUMMARY", "?"), set()).add(first + timedelta(days=number))
    return Output(days={name: len(found) for name, found in days.items()}, different=len(set().union(*days.values())))
