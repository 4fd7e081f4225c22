"""Coordinates of stars in degrees."""

from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "star_catalog",
    "description": "Right ascension and declination of stars in decimal degrees, their height at culmination, and which never rise",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str
    latitude: float


class Star(BaseModel):
    ra: float
    dec: float
    culmination: float


class Output(BaseModel):
    stars: dict[str, Star]
    hidden: list[str]


def hours(text: str) -> float:
    h, m, s = (float(part) for part in text.split(":"))
    return 15 * (h + m / 60 + s / 3600)


def degrees(text: str) -> float:
    d, m, s = (float(part) for part in text.split(":"))
    size = abs(d) + m / 60 + s / 3600
    return -size if d < 0 else size


def run(input: Input) -> Output:
    stars = {}
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if line.strip():
            name, ra, dec = line.rsplit(maxsplit=2)
            height = 90 - abs(input.latitude - degrees(dec))
            stars[name] = Star(
                ra=round(hours(ra), 4), dec=round(degrees(dec), 4), culmination=round(height, 4)
            )
    return Output(stars=stars, hidden=sorted(name for name, star in stars.items() if star.culmination <= 0))
