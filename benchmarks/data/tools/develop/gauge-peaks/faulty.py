"""The highest levels at the gauges of a river."""

from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "gauge_peaks",
    "description": "The highest level at each gauge of a river and when it was reached first, the gauges from which no level came at all, and how many readings are missing; a missing reading is -- or nothing",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str


class Peak(BaseModel):
    gauge: str
    level: int | None
    time: str


class Output(BaseModel):
    peaks: list[Peak]
    silent: list[str]
    missing: int


def run(input: Input) -> Output:
    """Lines: gauge;time;level in cm. The gauges come in the order of the file."""
    levels: dict[str, list[tuple[int, str]]] = {}
    missing = 0
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if not line.strip():
            continue
        gauge, time, level = (field.strip() for field in line.split(";"))
        known = levels.setdefault(gauge, [])
        if level in ("", "--"):
            missing += 1
        else:
            known.append((int(level), time))
    peaks = []
    for gauge, known in levels.items():
        level, time = max(known, key=lambda pair: pair[0])
        peaks.append(Peak(gauge=gauge, level=level, time=time))
    return Output(peaks=peaks, silent=[peak.gauge for peak in peaks if peak.level is None], missing=missing)
