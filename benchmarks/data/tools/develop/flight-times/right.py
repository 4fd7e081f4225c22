"""Durations of flights."""

from datetime import datetime, timedelta
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "flight_times",
    "description": "How long flights take, from local times of departure and arrival with their offsets from UTC",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="Lines: flight departs offset arrives offset, as in AB1 2026-03-01T10:15 +01:00 2026-03-01T13:20 -03:30")


class Output(BaseModel):
    durations: dict[str, str]
    longest: str


def offset(text: str) -> timedelta:
    sign = -1 if text.startswith("-") else 1
    hours, minutes = text.lstrip("+-").split(":")
    return sign * timedelta(hours=int(hours), minutes=int(minutes))


def run(input: Input) -> Output:
    times: dict[str, timedelta] = {}
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if not line.strip():
            continue
        flight, departs, there, arrives, here = line.split()
        begin = datetime.fromisoformat(departs) - offset(there)
        end = datetime.fromisoformat(arrives) - offset(here)
        if end <= begin:
            raise ValueError(f"{flight} arrives before it departs")
        times[flight] = end - begin
    durations = {}
    for flight, time in times.items():
        hours, minutes = divmod(int(time.total_seconds()) // 60, 60)
        durations[flight] = f"{hours}:{minutes:02}"
    longest = max(times, key=lambda flight: times[flight], default="")
    return Output(durations=durations, longest=longest)
