"""Who is let into a gym."""

import csv
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "gym_entry",
    "description": "Visits that the plan of a card lets in: full at any time, off-peak before the peak begins, frozen cards never",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    cards: str = Field(description="CSV with card, plan (full, off-peak or day) and frozen (yes or no)")
    visits: list[str] = Field(description="Card and time, such as 0412 17:30")
    peak: str = Field(default="16:00", description="When the peak begins, HH:MM")


class Output(BaseModel):
    admitted: list[str]
    refused: dict[str, int]


def may_enter(plan: str, frozen: bool, time: str, peak: str) -> bool:
    """Whether a card opens the door at this time."""
    return not frozen and plan == "full" or plan == "off-peak" and time < peak


def run(input: Input) -> Output:
    with Path(input.cards).open(newline="", encoding="utf-8") as file:
        cards = {row["card"]: row for row in csv.DictReader(file)}
    admitted = []
    refused: dict[str, int] = {}
    for visit in input.visits:
        card, time = visit.split()
        known = cards.get(card)
        if known and may_enter(known["plan"], known["frozen"] == "yes", time, input.peak):
            admitted.append(visit)
        else:
            refused[card] = refused.get(card, 0) + 1
    return Output(admitted=admitted, refused=refused)
