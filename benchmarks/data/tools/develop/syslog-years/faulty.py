"""The years that a system log leaves out."""

from datetime import datetime
from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "syslog_years",
    "description": "When the lines of a system log were written, whose times (such as Mar  5 07:30:00) have no year: that of the last line is known, and a log may run over several turns of the year; counts the lines of each year",
    "effects": ["read"],
    "dependencies": [],
}

MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


class Input(BaseModel):
    path: str
    year: int


class Output(BaseModel):
    moments: list[str]
    years: dict[str, int]


def moment(line: str, year: int) -> datetime:
    month, day, clock = line.split()[:3]
    hour, minute, second = (int(part) for part in clock.split(":"))
    return datetime(year, MONTHS.index(month) + 1, int(day), hour, minute, second)


def run(input: Input) -> Output:
    """The lines stand in the order of time, but for a few that are late within a month."""
    lines = [line for line in Path(input.path).read_text(encoding="utf-8").splitlines() if line.strip()]
    found = [moment(line, input.year) for line in lines]
    years: dict[str, int] = {}
    for when in found:
        years[str(when.year)] = years.get(str(when.year), 0) + 1
    return Output(moments=[when.isoformat(" ") for when in found], years=years)
