"""Range of the temperatures in a sensor's log, in degrees Celsius."""

import re
from pathlib import Path
from statistics import fmean

from pydantic import BaseModel

TOOL = {
    "name": "sensor_range",
    "description": "Lowest, highest and mean temperature of a sensor log",
    "effects": ["read"],
    "dependencies": [],
}

READING = re.compile(r"^(\d\d:\d\d) t=(-?\d+(?:\.\d+)?)([CF])")


class Input(BaseModel):
    path: str


class Output(BaseModel):
    low: float
    high: float
    mean: float
    readings: int


def celsius(number: float, unit: str) -> float:
    if unit == "F":
        return number * 5 / 9 - 32
    return number


def run(input: Input) -> Output:
    """One reading in each line, such as ``07:00 t=19.5C`` or ``07:00 t=67.1F``."""
    values = []
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        match = READING.match(line)
        if match:
            values.append(celsius(float(match.group(2)), match.group(3)))
    if not values:
        return Output(low=0.0, high=0.0, mean=0.0, readings=0)
    low, high = round(min(values), 2), round(max(values), 2)
    return Output(low=low, high=high, mean=round(fmean(values), 2), readings=len(values))
