"""Baker's percentages: all flour together is 100."""

import re
from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "bakers_percent",
    "description": "The parts of a dough (name: amount in g or kg) in percent of all flour, rounded to a tenth; what ends in the word flour is flour",
    "effects": ["read"],
    "dependencies": [],
}

LINE = re.compile(r"(.+?)\s*:\s*([\d.]+)\s*(g|kg)")


class Input(BaseModel):
    path: str


class Output(BaseModel):
    percent: dict[str, float]
    weight: float
    hydration: float


def run(input: Input) -> Output:
    parts: dict[str, float] = {}
    for number, line in enumerate(Path(input.path).read_text(encoding="utf-8").splitlines(), start=1):
        if not line.strip():
            continue
        match = LINE.fullmatch(line.strip())
        if match is None:
            raise ValueError(f"line {number}: {line!r} is not an amount in g or kg")
        name, amount, unit = match.groups()
        parts[name] = parts.get(name, 0) + float(amount) * (1000 if unit == "kg" else 1)
    flours = [grams for name, grams in parts.items() if name.split()[-1] == "flour"]
    if not flours:
        raise ValueError("a dough needs flour")
    flour = flours[0]
    return Output(
        percent={name: round(grams / flour * 100, 1) for name, grams in parts.items()},
        weight=round(sum(parts.values()), 1),
        hydration=round(parts.get("water", 0) / flour * 100, 1),
    )
