"""Temperatures from the log of a greenhouse controller."""

import json
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "greenhouse_log",
    "description": "Mean temperature of each house to a tenth, the hottest reading, and the number of lines that cannot be used",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="One JSON object a line, with house, temp in degrees, and at as HH:MM")
    houses: list[str] = Field(default_factory=list, description="Only these; all when empty")


class Output(BaseModel):
    means: dict[str, float]
    hottest: str | None
    unusable: int


def run(input: Input) -> Output:
    readings: dict[str, list[float]] = {}
    hottest: tuple[float, str] | None = None
    unusable = 0
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if not line.strip():
            continue
        try:
            entry = json.loads(line)
            house, temp, at = entry["house"], float(entry["temp"]), entry["at"]
        except ValueError:
            unusable += 1
            continue
        if input.houses and house not in input.houses:
            continue
        readings.setdefault(house, []).append(temp)
        if hottest is None or temp > hottest[0]:
            hottest = (temp, f"{house} {at}")
    return Output(
        means={house: round(sum(temps) / len(temps), 1) for house, temps in sorted(readings.items())},
        hottest=hottest[1] if hottest else None,
        unusable=unusable,
    )
