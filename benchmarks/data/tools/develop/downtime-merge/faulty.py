"""Maintenance windows of a day."""

from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "downtime_merge",
    "description": "Merges planned maintenance windows of a day that overlap or touch, names the services that each merged window is for, and says how many minutes are left without maintenance",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str


class Output(BaseModel):
    windows: list[str]
    services: list[list[str]]
    free_minutes: int


def minutes(text: str) -> int:
    hours, rest = text.split(":")
    return int(hours) * 60 + int(rest)


def clock(value: int) -> str:
    return f"{value // 60:02}:{value % 60:02}"


def run(input: Input) -> Output:
    """Lines HH:MM-HH:MM service, in any order, from 00:00 to 24:00."""
    merged: list[tuple[int, int, set[str]]] = []
    spans = []
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if line.strip():
            times, service = line.split()
            start, end = times.split("-")
            spans.append((minutes(start), minutes(end), service))
    for start, end, service in sorted(spans):
        if merged and start <= merged[-1][1]:
            first, last, services = merged[-1]
            merged[-1] = (first, end, services | {service})
        else:
            merged.append((start, end, {service}))
    return Output(
        windows=[f"{clock(start)}-{clock(end)}" for start, end, _ in merged],
        services=[sorted(services) for _, _, services in merged],
        free_minutes=1440 - sum(end - start for start, end, _ in merged),
    )
