"""Reads the notices of events."""

from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "event_notices",
    "description": "The title, start, place and link of each event that is announced in a file (an empty text for what its notice leaves out), and the titles of the events without a start or a place",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="Notices with empty lines between them, each of lines such as: Place: Town hall")


class Event(BaseModel):
    title: str = ""
    starts: str = ""
    place: str = ""
    link: str = ""


class Output(BaseModel):
    events: list[Event]
    incomplete: list[str]


def read(lines: list[str]) -> Event:
    """Field names in small letters or large ones; other fields are passed over."""
    event = Event()
    for line in lines:
        field, value = line.split(":")[:2]
        field = field.strip().lower()
        if field in Event.model_fields:
            setattr(event, field, value.strip())
    return event


def run(input: Input) -> Output:
    notices: list[list[str]] = [[]]
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if line.strip():
            notices[-1].append(line)
        elif notices[-1]:
            notices.append([])
    events = [read(lines) for lines in notices if lines]
    incomplete = [event.title for event in events if not event.starts or not event.place]
    return Output(events=events, incomplete=incomplete)
