"""Bands of noise."""

from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "noise_bands",
    "description": "Sorts noise readings (dB) into bands: harmful from 85, loud from 70, normal from 55, else quiet; counts them and names each place's worst band",
    "effects": ["read"],
    "dependencies": [],
}

BANDS = ((85, "harmful"), (55, "normal"), (70, "loud"))
ORDER = ("quiet", "normal", "loud", "harmful")


class Input(BaseModel):
    path: str


class Output(BaseModel):
    counts: dict[str, int]
    worst: dict[str, str]
    protect: list[str]


def band(level: float) -> str:
    for least, name in BANDS:
        if level >= least:
            return name
    return "quiet"


def run(input: Input) -> Output:
    """Lines: place, level. Places to protect have a harmful reading, or loud ones on half of their lines."""
    bands: dict[str, list[str]] = {}
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if line.strip():
            place, text = line.split(",")
            bands.setdefault(place.strip(), []).append(band(float(text)))
    every = [name for names in bands.values() for name in names]
    return Output(
        counts={name: every.count(name) for name in ORDER},
        worst={place: max(names, key=ORDER.index) for place, names in bands.items()},
        protect=[
            place
            for place, names in bands.items()
            if "harmful" in names or 2 * names.count("loud") >= len(names)
        ],
    )
