"""The order of a help desk's tickets."""

import csv
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "ticket_queue",
    "description": "The order in which a help desk takes its tickets: urgent ones first, and the older of equally urgent ones before the younger",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="CSV with id, urgency (5 is the highest; empty is 1), opened (ISO) and state")
    most: int = Field(10, description="Tickets to list")


class Output(BaseModel):
    order: list[str]
    waiting: int


def run(input: Input) -> Output:
    tickets = []
    with Path(input.path).open(newline="", encoding="utf-8") as handle:
        for row in csv.DictReader(handle):
            if row["state"].strip().lower() == "closed":
                continue
            urgency = int(row["urgency"]) if row["urgency"].strip() else 1
            tickets.append((urgency, row["opened"], row["id"]))
    tickets.sort(key=lambda ticket: (-ticket[0], ticket[1]))
    return Output(order=[name for _, _, name in tickets][: input.most], waiting=len(tickets))
