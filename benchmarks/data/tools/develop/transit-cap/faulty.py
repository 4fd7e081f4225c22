"""Fares of contactless cards with a cap for each day."""

import csv
from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "transit_cap",
    "description": "What each card pays for its journeys when no card pays more than the cap on one day",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str
    cap: int = 700


class Output(BaseModel):
    charged: dict[str, int]
    capped_days: int
    free_rides: int


def run(input: Input) -> Output:
    with Path(input.path).open(newline="", encoding="utf-8") as handle:
        taps = sorted(csv.DictReader(handle), key=lambda row: (row["stamp"], row["card"]))
    paid: dict[str, int] = {}
    charged: dict[str, int] = {}
    free = 0
    for tap in taps:
        card, day = tap["card"], tap["stamp"][:10]
        key = day
        before = paid.get(key, 0)
        fare = min(int(tap["zone_price"]), input.cap - before)
        if fare == 0:
            free += 1
        paid[key] = before + fare
        charged[card] = charged.get(card, 0) + fare
    return Output(
        charged=dict(sorted(charged.items())),
        capped_days=sum(total == input.cap for total in paid.values()),
        free_rides=free,
    )
