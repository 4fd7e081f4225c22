"""The newest reading of each device."""

from datetime import datetime
from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "latest_readings",
    "description": "Keep the newest reading of each device from lines 'device;DD.MM.YYYY HH:MM;value' in any order; of two at the same time the later line",
    "effects": ["read"],
    "dependencies": [],
}


FORM = "%d.%m.%Y %H:%M"


class Input(BaseModel):
    path: str


class Output(BaseModel):
    newest: dict[str, float]
    times: dict[str, str]
    last_device: str | None


def when(text: str) -> datetime:
    return datetime.strptime(text, FORM)


def read(path: str) -> list[tuple[str, str, float]]:
    readings = []
    for line in Path(path).read_text(encoding="utf-8").splitlines():
        if line.strip():
            device, moment, value = line.split(";")
            readings.append((device.strip(), moment.strip(), float(value)))
    return readings


def run(input: Input) -> Output:
    newest: dict[str, tuple[str, float]] = {}
    for device, moment, value in read(input.path):
        if device not in newest or moment >= newest[device][0]:
            newest[device] = (moment, value)
    times = {device: moment for device, (moment, _) in sorted(newest.items())}
    last = max(sorted(newest), key=lambda device: when(newest[device][0]), default=None)
    return Output(newest={device: newest[device][1] for device in times}, times=times, last_device=last)
