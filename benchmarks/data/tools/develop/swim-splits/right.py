"""Laps of swimmers."""

from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "swim_splits",
    "description": "Lap times of swimmers from the times at which they touched the wall",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="Lines: swimmer: times since the start, such as 31.2 1:05.0")


class Swim(BaseModel):
    swimmer: str
    laps: list[float]
    fastest: int = Field(description="Number of the fastest lap, the earlier of equal ones; 0 without laps")


class Output(BaseModel):
    swims: list[Swim]


def seconds(text: str) -> float:
    minutes, _, rest = text.rpartition(":")
    return (int(minutes) * 60 if minutes else 0) + float(rest)


def run(input: Input) -> Output:
    swims = []
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if not line.strip():
            continue
        swimmer, _, rest = line.partition(":")
        touches = [seconds(text) for text in rest.split()]
        laps = [round(after - before, 2) for before, after in zip([0.0, *touches], touches)]
        fastest = laps.index(min(laps)) + 1 if laps else 0
        swims.append(Swim(swimmer=swimmer.strip(), laps=laps, fastest=fastest))
    return Output(swims=swims)
