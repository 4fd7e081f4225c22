"""Places that are open."""

from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "opening_hours",
    "description": "Which places are open at a given time of a day of the week",
    "effects": ["read"],
    "dependencies": [],
}

DAYS = ["mo", "tu", "we", "th", "fr", "sa", "su"]


class Input(BaseModel):
    path: str = Field(description="Lines: place; days; from-to, as in Blue Bar; fr,sa; 20:00-02:00")
    day: str
    time: str = Field(description="HH:MM")


class Output(BaseModel):
    open: list[str]
    closing: dict[str, str] = Field(description="When each of them closes")


def minutes(clock: str) -> int:
    hour, minute = clock.split(":")
    return int(hour) * 60 + int(minute)


def is_open(day: int, time: int, days: list[str], begin: int, end: int) -> bool:
    """A place closes at its end; where that is not after the begin, it is on the next day."""
    if end > begin:
        return DAYS[day] in days and begin <= time < end
    return DAYS[day] in days and (time >= begin or time < end)


def run(input: Input) -> Output:
    day, time = DAYS.index(input.day.lower()), minutes(input.time)
    closing: dict[str, str] = {}
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if not line.strip():
            continue
        place, when, hours = (part.strip() for part in line.split(";"))
        days = [name.strip().lower() for name in when.split(",")]
        begin, end = hours.split("-")
        if is_open(day, time, days, minutes(begin), minutes(end)):
            closing[place] = end.strip()
    return Output(open=sorted(closing), closing=closing)
