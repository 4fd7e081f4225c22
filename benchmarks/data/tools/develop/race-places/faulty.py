"""Places and points of a race."""

from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "race_places",
    "description": "The places of a race by time: the same time has the same place, and the next place is as much higher as there were runners before it (1, 2, 2, 4); each place has its points",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str
    points: list[int] = [10, 6, 3, 1]


class Output(BaseModel):
    table: list[str]
    points: dict[str, int]
    not_finished: list[str]


def seconds(text: str) -> int:
    total = 0
    for part in text.split(":"):
        total = total * 60 + int(part)
    return total


def run(input: Input) -> Output:
    """Lines: name, [hours:]minutes:seconds, or dnf. Of the same place by name; a place beyond the list has no points."""
    times: dict[str, int] = {}
    not_finished = []
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if not line.strip():
            continue
        name, text = (cell.strip() for cell in line.split(","))
        if text.lower() == "dnf":
            not_finished.append(name)
        else:
            times[name] = seconds(text)
    table = []
    points = {}
    place, last = 0, None
    for name in sorted(times, key=lambda name: (times[name], name)):
        if times[name] != last:
            place, last = place + 1, times[name]
        table.append(f"{place} {name}")
        if place <= len(input.points):
            points[name] = input.points[place - 1]
    return Output(table=table, points=points, not_finished=not_finished)
