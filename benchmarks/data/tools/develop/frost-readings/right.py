"""Looks for frost in the readings of a station."""

from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "frost_readings",
    "description": "The lowest of a day's temperatures in whole degrees and when it was first read, at which times it was below the limit, and how many readings are missing",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="Lines of the form: HH:MM degrees; where a reading is missing, some mark")
    limit: int = 0


class Output(BaseModel):
    lowest: int | None
    at: str
    below: list[str]
    read: int
    missing: int


def run(input: Input) -> Output:
    lowest: int | None = None
    at = ""
    below = []
    read = missing = 0
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if not line.strip():
            continue
        clock, value = line.split(maxsplit=1)
        if not value.strip().removeprefix("-").isdigit():
            missing += 1
            continue
        read += 1
        degrees = int(value)
        if lowest is None or degrees < lowest:
            lowest, at = degrees, clock
        if degrees < input.limit:
            below.append(clock)
    return Output(lowest=lowest, at=at, below=below, read=read, missing=missing)
