"""Readings without the blank."""

from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "plate_blank",
    "description": "Takes the blank from the readings of a plate reader: the mean of the blank wells of the same plate, or nothing for a plate that has none; below zero it is zero",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str
    least: float = 0.1


class Output(BaseModel):
    values: dict[str, float]
    grown: list[str]
    without_blank: list[str]


def run(input: Input) -> Output:
    """Lines: plate, sample (or blank), reading. Values to three places, grown is what has the least value or more."""
    rows = []
    blanks: dict[str, list[float]] = {}
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if not line.strip():
            continue
        plate, sample, text = (cell.strip() for cell in line.split(","))
        if sample.lower() == "blank":
            blanks.setdefault(plate, []).append(float(text))
        else:
            rows.append((plate, sample, float(text)))
    every = [reading for found in blanks.values() for reading in found]
    base = sum(every) / len(every) if every else 0.0
    values = {}
    for plate, sample, reading in sorted(rows):
        values[f"{plate} {sample}"] = round(max(reading - base, 0.0), 3)
    return Output(
        values=values,
        grown=[name for name, value in values.items() if value >= input.least],
        without_blank=sorted({plate for plate, _, _ in rows} - set(blanks)),
    )
