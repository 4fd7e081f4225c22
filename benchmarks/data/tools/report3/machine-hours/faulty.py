"""Running times of machines."""

import re
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "machine_hours",
    "description": "Running minutes of each machine in a log of durations such as 2h 15min or 90 s",
    "effects": ["read"],
    "dependencies": [],
}

SECONDS = {"s": 1, "min": 60, "h": 360, "d": 86400}


class Input(BaseModel):
    path: str = Field(description="Lines of the form: machine: duration")
    at_least: int = Field(0, description="Machines that ran for fewer minutes are left out")


class Output(BaseModel):
    minutes: dict[str, int]
    busiest: str | None


def seconds_of(text: str) -> int:
    total = 0
    for number, unit in re.findall(r"(\d+)\s*(d|h|min|s)\b", text):
        total += int(number) * SECONDS[unit]
    return total


def run(input: Input) -> Output:
    totals: dict[str, int] = {}
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        machine, _, duration = line.partition(":")
        machine = machine.strip()
        totals[machine] = totals.get(machine, 0) + seconds_of(duration)
    minutes = {name: total // 60 for name, total in totals.items() if total // 60 >= input.at_least}
    busiest = max(minutes, key=lambda name: minutes[name], default=None)
    return Output(minutes=minutes, busiest=busiest)
