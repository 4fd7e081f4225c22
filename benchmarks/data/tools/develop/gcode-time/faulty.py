"""Time that a milling program takes."""

import math
import re
from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "gcode_time",
    "description": "Seconds that G0 and G1 moves and G4 waits of a program take, and millimetres cut; a feed F holds until the next",
    "effects": ["read"],
    "dependencies": [],
}

WORD = re.compile(r"([A-Z])(-?\d+(?:\.\d+)?)")


class Input(BaseModel):
    path: str
    rapid: float = 3000


class Output(BaseModel):
    seconds: float
    cut_mm: float
    waits: int


def run(input: Input) -> Output:
    x = y = 0.0
    feed = input.rapid
    minutes = cut = 0.0
    waits = 0
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        code = line.split(";")[0].upper()
        words = {letter: float(value) for letter, value in WORD.findall(code)}
        feed = words.get("F", input.rapid)
        command = words.get("G")
        if command == 4:
            minutes += words.get("P", 0) / 60000
            waits += 1
        elif command in (0, 1):
            new_x, new_y = words.get("X", x), words.get("Y", y)
            way = math.hypot(new_x - x, new_y - y)
            minutes += way / (input.rapid if command == 0 else feed)
            cut += way if command == 1 else 0
            x, y = new_x, new_y
    return Output(seconds=round(minutes * 60, 2), cut_mm=round(cut, 3), waits=waits)
