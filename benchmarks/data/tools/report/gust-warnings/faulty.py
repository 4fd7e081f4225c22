"""Warnings for gusts of wind."""

from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "gust_warnings",
    "description": "The level of warning of each weather station, which is the highest one that its strongest gust reaches; how many stations have each level, and the station with the strongest gust (the first of several)",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="Lines of the form: station;gust in km/h")
    levels: dict[str, int] = Field(
        {"yellow": 50, "orange": 75, "red": 105}, description="The least gust of each level"
    )


class Output(BaseModel):
    warnings: dict[str, str]
    counts: dict[str, int]
    strongest: str | None


def strongest_gusts(path: str) -> dict[str, int]:
    gusts: dict[str, int] = {}
    for line in Path(path).read_text(encoding="utf-8").splitlines():
        if line.strip():
            station, gust = line.split(";")
            station = station.strip()
            gusts[station] = max(gusts.get(station, 0), int(gust))
    return gusts


def level_of(gust: int, levels: dict[str, int]) -> str | None:
    for level, least in sorted(levels.items(), key=lambda item: item[1]):
        if gust >= least:
            return level
    return None


def run(input: Input) -> Output:
    """A station below all levels has no warning."""
    gusts = strongest_gusts(input.path)
    warnings = {}
    counts = dict.fromkeys(input.levels, 0)
    for station, gust in gusts.items():
        level = level_of(gust, input.levels)
        if level is not None:
            warnings[station] = level
            counts[level] += 1
    return Output(
        warnings=warnings,
        counts=counts,
        strongest=max(gusts, key=lambda station: gusts[station], default=None),
    )
