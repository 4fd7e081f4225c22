"""Tempo of tapped songs."""

from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "tap_tempo",
    "description": "The tempo of songs in beats a minute, from the times at which somebody tapped",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="Lines: song: milliseconds of the taps")
    pause: int = Field(2000, description="Intervals longer than this do not count")


class Output(BaseModel):
    tempo: dict[str, float]
    unclear: list[str] = Field(description="Songs without two taps that count")


def median(values: list[int]) -> float:
    ordered = sorted(values)
    middle = len(ordered) // 2
    return float(ordered[middle])


def run(input: Input) -> Output:
    tempo: dict[str, float] = {}
    unclear = []
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if ":" not in line:
            continue
        song, _, rest = line.partition(":")
        taps = sorted(int(tap) for tap in rest.split())
        intervals = [after - before for before, after in zip(taps, taps[1:])]
        counted = [interval for interval in intervals if 0 < interval <= input.pause]
        if counted:
            tempo[song.strip()] = round(60000 / median(counted), 1)
        else:
            unclear.append(song.strip())
    return Output(tempo=tempo, unclear=unclear)
