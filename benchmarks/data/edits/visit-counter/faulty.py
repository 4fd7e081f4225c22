"""Keeps count of the visitors of a place."""

import json
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "visit_counter",
    "description": "Adds the visitors of one day to a file of counts: how often each has come in all, who came for the first time, and how many days have been counted; a day that was counted already is refused",
    "effects": ["read", "write"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="The file of counts; it need not be there yet")
    day: str
    visitors: list[str] = Field(description="Who came, once for each visit")


class Output(BaseModel):
    counts: dict[str, int]
    first: list[str]
    days: int


def load(path: Path) -> dict:
    if not path.exists():
        return {"counts": {}, "days": []}
    return json.loads(path.read_text(encoding="utf-8"))


def run(input: Input) -> Output:
    """Those who came for the first time in the order in which they came."""
    path = Path(input.path)
    state = load(path)
    if input.day in state["days"]:
        raise ValueError(f"{input.day} was counted already")
    counts = state["counts"]
    first = [name for name in dict.fromkeys(input.visitors) if name not in counts]
    for name in dict.fromkeys(input.visitors):
        counts[name] = input.visitors.count(name)
    state["days"].append(input.day)
    path.write_text(json.dumps(state, sort_keys=True), encoding="utf-8")
    return Output(counts=counts, first=first, days=len(state["days"]))
