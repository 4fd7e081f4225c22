"""Times at which an information desk is staffed."""

from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "desk_cover",
    "description": "The minutes of each day during which somebody is at an information desk, the days on which these are fewer than a given number, and the minutes that each volunteer is there",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="Lines of the form: day;volunteer;hh:mm-hh:mm, in any order")
    least: int = Field(180, ge=0, description="Minutes of which fewer are too few")


class Output(BaseModel):
    covered: dict[str, int]
    thin: list[str]
    volunteers: dict[str, int]


def minutes(clock: str) -> int:
    hour, minute = clock.split(":")
    return int(hour) * 60 + int(minute)


def shifts(path: str) -> list[tuple[str, str, int, int]]:
    found = []
    for line in Path(path).read_text(encoding="utf-8").splitlines():
        if line.strip():
            day, volunteer, times = (part.strip() for part in line.split(";"))
            start, end = times.split("-")
            found.append((day, volunteer, minutes(start), minutes(end)))
    return found


def length(spans: list[tuple[int, int]]) -> int:
    total = 0
    for start, end in spans:
        total += end - start
    return total


def run(input: Input) -> Output:
    days: dict[str, list[tuple[int, int]]] = {}
    volunteers: dict[str, int] = {}
    for day, volunteer, start, end in shifts(input.path):
        days.setdefault(day, []).append((start, end))
        volunteers[volunteer] = volunteers.get(volunteer, 0) + end - start
    covered = {day: length(spans) for day, spans in days.items()}
    return Output(
        covered=covered,
        thin=[day for day, total in covered.items() if total < input.least],
        volunteers=volunteers,
    )
