"""Times in a building by the log of its door."""

from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "badge_times",
    "description": "Minutes that people spent in a building, by the log of its door, until it is closed",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="Lines: HH:MM in NAME, or HH:MM out NAME, in the order of time")
    closes: str = "20:00"


class Output(BaseModel):
    minutes: dict[str, int]
    most: int = Field(description="The most people who were there at once")
    odd: list[str] = Field(description="Lines that do not fit: in twice, or out without in")


def clock(text: str) -> int:
    hour, minute = text.split(":")
    return int(hour) * 60 + int(minute)


def run(input: Input) -> Output:
    """A line that does not fit changes nothing."""
    since: dict[str, int] = {}
    minutes: dict[str, int] = {}
    odd: list[str] = []
    most = 0
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if not line.strip():
            continue
        time, way, name = line.split(None, 2)
        inside = name in since
        if inside == (way == "in"):
            odd.append(line.strip())
        elif way == "in":
            since[name] = clock(time)
            minutes.setdefault(name, 0)
        else:
            minutes[name] += clock(time) - since.pop(name)
        most = max(most, len(since))
    return Output(minutes=minutes, most=most, odd=odd)
