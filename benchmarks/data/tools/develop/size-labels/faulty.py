"""Sizes as people read them."""

from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "size_labels",
    "description": "The sizes of files as people read them: with the unit B, kB, MB, GB or TB (steps of 1000) and one digit behind the point, except for bytes, so that never more than three digits stand before it; and the size of all, and how many files have each unit",
    "effects": ["read"],
    "dependencies": [],
}


UNITS = ("B", "kB", "MB", "GB", "TB")


class Input(BaseModel):
    path: str


class Output(BaseModel):
    labels: dict[str, str]
    total: str
    units: dict[str, int]


def label(size: int) -> str:
    """Such as 1.5 MB."""
    value = float(size)
    unit = 0
    while value >= 1000 and unit < len(UNITS) - 1:
        value /= 1000
        unit += 1
    return f"{value:.1f} {UNITS[unit]}" if unit else f"{size} B"


def run(input: Input) -> Output:
    """Lines: bytes, a space, the file's name."""
    sizes: dict[str, int] = {}
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if line.strip():
            size, name = line.split(" ", 1)
            sizes[name] = int(size)
    labels = {name: label(size) for name, size in sizes.items()}
    units = dict.fromkeys(UNITS, 0)
    for text in labels.values():
        units[text.split()[1]] += 1
    return Output(labels=labels, total=label(sum(sizes.values())), units=units)
