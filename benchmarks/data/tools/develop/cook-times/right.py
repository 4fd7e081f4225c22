"""When to start cooking."""

import re

from pydantic import BaseModel

TOOL = {
    "name": "cook_times",
    "description": "Add up the times of a recipe's steps (such as '45 min', '1 h 20 min', '1.5 hours') and tell when to start for a meal at a given time, and which step takes longest",
    "effects": ["pure"],
    "dependencies": [],
}


UNITS = {"h": 60, "hour": 60, "hours": 60, "min": 1, "minute": 1, "minutes": 1}
PART = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]+)")


class Input(BaseModel):
    steps: dict[str, str]
    serve: str


class Output(BaseModel):
    minutes: dict[str, int]
    start: str
    longest: str | None


def minutes(text: str) -> int:
    total = 0.0
    for number, unit in PART.findall(text.lower()):
        if unit not in UNITS:
            raise ValueError(f"not a unit of time: {unit}")
        total += float(number) * UNITS[unit]
    return round(total)


def run(input: Input) -> Output:
    taken = {step: minutes(text) for step, text in input.steps.items()}
    hour, minute = map(int, input.serve.split(":"))
    start = (hour * 60 + minute - sum(taken.values())) % (24 * 60)
    longest = max(taken, key=taken.__getitem__, default=None)
    return Output(minutes=taken, start=f"{start // 60:02d}:{start % 60:02d}", longest=longest)
