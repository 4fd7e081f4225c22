"""An agenda from an iCalendar file."""

from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "ics_agenda",
    "description": "The events of a calendar file in the order of their beginnings, with place",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str
    month: str = Field("", description="YYYY-MM, or nothing for all events")


class Output(BaseModel):
    agenda: list[str]
    whole_days: int


def unfold(text: str) -> list[str]:
    """The lines of the file; one that begins with a space continues the one before."""
    lines: list[str] = []
    for line in text.splitlines():
        if line[:1] in (" ", "\t") and lines:
            lines[-1] += line[1:]
        else:
            lines.append(line)
    return lines


def plain(value: str) -> str:
    return value.replace("\\,", ",").replace("\\;", ";").replace("\\n", " ")


def when(value: str) -> str:
    day = f"{value[:4]}-{value[4:6]}-{value[6:8]}"
    return f"{day} {value[9:11]}:{value[11:13]}" if "T" in value else day


def run(input: Input) -> Output:
    events: list[tuple[str, str]] = []
    fields: dict[str, str] = {}
    for line in unfold(Path(input.path).read_bytes().decode()):
        name, _, value = line.partition(":")
        if line == "BEGIN:VEVENT":
            fields = {}
        elif line == "END:VEVENT":
            place = f" ({plain(fields['LOCATION'])})" if fields.get("LOCATION") else ""
            events.append((when(fields["DTSTART"]), plain(fields.get("SUMMARY", "no title")) + place))
        else:
            fields[name.split(";")[0].upper()] = value
    chosen = [event for event in sorted(events) if event[0].startswith(input.month)]
    return Output(
        agenda=[f"{start}  {text}" for start, text in chosen],
        whole_days=sum(len(start) == 10 for start, _ in chosen),
    )
