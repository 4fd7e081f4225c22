"""Bursts of photos."""

from datetime import datetime
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "photo_bursts",
    "description": "Group photos into bursts, in which each was taken at most some seconds after the one before",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="Lines: file name, date and time such as 2026-05-01 10:00:03")
    gap: int = Field(5, description="Seconds")
    least: int = Field(2, description="Photos that make a burst")


class Output(BaseModel):
    bursts: list[list[str]]
    single: int


def photos(path: str) -> list[tuple[datetime, str]]:
    found = []
    for line in Path(path).read_text(encoding="utf-8").splitlines():
        if line.strip():
            name, taken = line.split(None, 1)
            found.append((datetime.fromisoformat(taken.strip()), name))
    return sorted(found)


def run(input: Input) -> Output:
    groups: list[list[tuple[datetime, str]]] = []
    for taken, name in photos(input.path):
        if groups and (taken - groups[-1][0][0]).total_seconds() <= input.gap:
            groups[-1].append((taken, name))
        else:
            groups.append([(taken, name)])
    bursts = [[name for _, name in group] for group in groups if len(group) >= input.least]
    return Output(bursts=bursts, single=sum(len(group) for group in groups) - sum(map(len, bursts)))
