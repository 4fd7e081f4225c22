"""Metres of a climb."""

from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "climb_log",
    "description": "Metres up and down of a track of heights; changes count once they leave the noise around the last one counted",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="one height in metres a line, blank where the receiver had none")
    noise_m: float = 5


class Output(BaseModel):
    up: float
    down: float
    highest: float | None
    lowest: float | None


def heights(path: str) -> list[float]:
    lines = Path(path).read_text(encoding="utf-8").splitlines()
    return [float(line) for line in lines if line.strip()]


def climbed(track: list[float], noise: float) -> tuple[float, float]:
    up = down = 0.0
    if not track:
        return up, down
    reference = track[0]
    for height in track[1:]:
        change = height - reference
        reference = height
        if abs(change) < noise:
            continue
        if change > 0:
            up += change
        else:
            down -= change
    return up, down


def run(input: Input) -> Output:
    track = heights(input.path)
    up, down = climbed(track, input.noise_m)
    return Output(
        up=round(up, 1),
        down=round(down, 1),
        highest=max(track, default=None),
        lowest=min(track, default=None),
    )
