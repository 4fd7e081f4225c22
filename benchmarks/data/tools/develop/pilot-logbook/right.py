"""Adds up the flight times of a pilot's logbook."""

from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "pilot_logbook",
    "description": "The flight time of a pilot in all and with each aircraft, the day of the longest flight (the first of several), and the number of flights; all times are written as hours.minutes, so that 1.45 is an hour and 45 minutes",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="Lines of the form: day;aircraft;hours.minutes, such as: 2024-05-01;D-EABC;1.45")


class Output(BaseModel):
    total: str
    aircraft: dict[str, str]
    longest: str | None
    flights: int


def duration(text: str) -> int:
    hours, _, rest = text.partition(".")
    return int(hours) * 60 + int(rest)


def written(total: int) -> str:
    return f"{total // 60}.{total % 60:02d}"


def run(input: Input) -> Output:
    """Each line is a flight; minutes always have two digits."""
    times: dict[str, int] = {}
    longest, most, flights = None, -1, 0
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if not line.strip():
            continue
        day, aircraft, flown = (part.strip() for part in line.split(";"))
        time = duration(flown)
        times[aircraft] = times.get(aircraft, 0) + time
        flights += 1
        if time > most:
            longest, most = day, time
    return Output(
        total=written(sum(times.values())),
        aircraft={aircraft: written(time) for aircraft, time in times.items()},
        longest=longest,
        flights=flights,
    )
