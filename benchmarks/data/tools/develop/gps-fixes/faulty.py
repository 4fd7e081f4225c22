"""Reads the positions of an NMEA log."""

from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "gps_fixes",
    "description": "Positions of a GPS log in degrees",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str


class Output(BaseModel):
    fixes: list[tuple[float, float]]
    north_most: float


def degrees(text: str, hemisphere: str) -> float:
    """ddmm.mmm or dddmm.mmm as degrees; south and west are negative."""
    point = text.index(".")
    whole, minutes = int(text[: point - 2]), float(text[point - 2 :])
    value = round(whole + minutes / 60, 5)
    return value


def run(input: Input) -> Output:
    fixes = []
    for sentence in Path(input.path).read_text(encoding="ascii").splitlines():
        fields = sentence.split(",")
        if fields[0] != "$GPGGA":
            continue
        latitude = degrees(fields[2], fields[3])
        longitude = degrees(fields[4], fields[5])
        fixes.append((latitude, longitude))
    if not fixes:
        raise ValueError("no position in the log")
    return Output(fixes=fixes, north_most=max(latitude for latitude, _ in fixes))
