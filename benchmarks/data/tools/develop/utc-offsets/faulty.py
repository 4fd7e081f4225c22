"""What the clocks of stations show."""

from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "utc_offsets",
    "description": "How the offsets of stations from UTC are written (+05:30), which stations share one, and what the clocks there show at a moment of UTC, with -1 or +1 where it is the day before or after; the list has minutes, below zero in the west",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str
    utc: str


class Output(BaseModel):
    offsets: dict[str, list[str]]
    clocks: dict[str, str]


def written(offset: int) -> str:
    """Such as -03:30."""
    hours, minutes = divmod(offset, 60)
    return f"{hours:+03d}:{minutes:02d}"


def run(input: Input) -> Output:
    """Lines: station, a tabulator, minutes. The offsets go from west to east, the stations in the order of the list."""
    hour, minute = input.utc.split(":")
    now = int(hour) * 60 + int(minute)
    stations: list[tuple[int, str]] = []
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if line.strip():
            name, offset = line.rsplit("\t", 1)
            stations.append((int(offset), name.strip()))
    offsets: dict[str, list[str]] = {}
    for offset, name in sorted(stations, key=lambda station: station[0]):
        offsets.setdefault(written(offset), []).append(name)
    clocks = {}
    for offset, name in stations:
        day, rest = divmod(now + offset, 1440)
        clocks[name] = f"{rest // 60:02d}:{rest % 60:02d}" + (f" {day:+d}" if day else "")
    return Output(offsets=offsets, clocks=clocks)
