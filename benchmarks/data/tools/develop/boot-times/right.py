"""How long machines take to start."""

from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "boot_times",
    "description": "Seconds from start to ready of each machine in a log with times of day (a start may be shortly before midnight), the slowest machine, and those that did not get ready",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str


class Output(BaseModel):
    seconds: dict[str, int]
    slowest: str | None
    hanging: list[str]


def clock(text: str) -> int:
    hours, minutes, seconds = map(int, text.split(":"))
    return hours * 3600 + minutes * 60 + seconds


def run(input: Input) -> Output:
    """Lines: HH:MM:SS machine event; of several starts of a machine the last counts."""
    started: dict[str, int] = {}
    seconds: dict[str, int] = {}
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if not line.strip():
            continue
        time, machine, event = line.split()
        if event == "start":
            started[machine] = clock(time)
        elif event == "ready" and machine in started:
            seconds[machine] = (clock(time) - started.pop(machine)) % 86400
    slowest = max(sorted(seconds), key=lambda name: seconds[name], default=None)
    return Output(seconds=seconds, slowest=slowest, hanging=sorted(started))
