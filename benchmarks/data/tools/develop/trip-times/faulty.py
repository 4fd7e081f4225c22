"""How long the trips of a timetable take."""

import csv
from datetime import datetime
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "trip_times",
    "description": "Minutes that each trip takes from its first to its last stop, one decimal, and its end as HH:MM; times of a service day go on beyond midnight as 24:10:00 or 25:10:00 and are shown as 00:10 and 01:10",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="CSV with trip, stop and time, in the order of the stops")


class Output(BaseModel):
    minutes: dict[str, float]
    ends: dict[str, str]


def seconds(text: str) -> int:
    moment = datetime.strptime(text.strip(), "%H:%M:%S")
    return moment.hour * 3600 + moment.minute * 60 + moment.second


def clock(moment: int) -> str:
    return f"{moment // 3600 % 24:02d}:{moment // 60 % 60:02d}"


def run(input: Input) -> Output:
    times: dict[str, list[int]] = {}
    with Path(input.path).open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            times.setdefault(row["trip"], []).append(seconds(row["time"]))
    return Output(
        minutes={trip: round((moments[-1] - moments[0]) / 60, 1) for trip, moments in times.items()},
        ends={trip: clock(moments[-1]) for trip, moments in times.items()},
    )
