"""Which vehicles of a fleet have to be serviced."""

import json
from datetime import date
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "fleet_service",
    "description": "Vehicles that need a service",
    "effects": ["read"],
    "dependencies": [],
}

EVERY_KM = 15_000
EVERY_DAYS = 365


class Input(BaseModel):
    path: str = Field(description="JSON: vehicle to km, last_km and last_date (of the last service)")
    today: date


class Output(BaseModel):
    due: list[str]
    km_left: dict[str, int]


def is_due(driven: int, days: int) -> bool:
    """After 15,000 km or after a year, whichever comes first."""
    return driven >= EVERY_KM or days >= EVERY_DAYS


def run(input: Input) -> Output:
    due, left = [], {}
    fleet = json.loads(Path(input.path).read_text(encoding="utf-8"))
    for name, facts in sorted(fleet.items()):
        driven = facts["km"] - facts["last_km"]
        days = (input.today - date.fromisoformat(facts["last_date"])).days
        if is_due(driven, days):
            due.append(name)
        left[name] = max(0, EVERY_KM - driven)
    return Output(due=due, km_left=left)
