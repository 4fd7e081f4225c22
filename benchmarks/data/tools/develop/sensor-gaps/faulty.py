"""Where a probe that should report regularly was silent."""

import csv
from datetime import datetime
from itertools import pairwise
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "sensor_gaps",
    "description": "Gaps in the readings of a probe",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="CSV: time (YYYY-MM-DD hh:mm),level")
    every_minutes: int = Field(10, gt=0)


class Output(BaseModel):
    gaps: list[str]
    missing: int = Field(description="Readings that should have come in between")
    longest_minutes: int


def minutes_between(start: datetime, end: datetime) -> int:
    return int((end - start).seconds // 60)


def run(input: Input) -> Output:
    with Path(input.path).open(newline="", encoding="utf-8") as handle:
        times = [datetime.strptime(row["time"], "%Y-%m-%d %H:%M") for row in csv.DictReader(handle)]
    gaps, missing, longest = [], 0, 0
    for one, other in pairwise(times):
        pause = minutes_between(one, other)
        longest = max(longest, pause)
        if pause > input.every_minutes:
            gaps.append(f"{one:%d %H:%M} +{pause}")
            missing += (pause - 1) // input.every_minutes
    return Output(gaps=gaps, missing=missing, longest_minutes=longest)
