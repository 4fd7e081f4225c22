"""Corrected times of a handicap race."""

import csv
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "handicap_race",
    "description": "Rank the boats of a race by their corrected times (elapsed seconds times 1000 by the boat's number)",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="CSV with boat, number (its handicap) and elapsed (H:MM:SS, or DNF)")


class Output(BaseModel):
    corrected: dict[str, int]
    ranking: list[str]
    retired: list[str]


def seconds(text: str) -> int:
    total = 0
    for part in text.split(":"):
        total = total * 60 + int(part)
    return total


def run(input: Input) -> Output:
    """Corrected times are whole seconds, halves rounded up; equal ones are ranked by the name."""
    elapsed: dict[str, int] = {}
    corrected: dict[str, int] = {}
    retired = []
    with Path(input.path).open(newline="", encoding="utf-8") as handle:
        for row in csv.DictReader(handle):
            boat = row["boat"].strip()
            if row["elapsed"].strip().upper() == "DNF":
                retired.append(boat)
                continue
            elapsed[boat] = seconds(row["elapsed"])
            number = int(row["number"])
            corrected[boat] = (2000 * elapsed[boat] + number) // (2 * number)
    ranking = sorted(corrected, key=lambda boat: (elapsed[boat], boat))
    return Output(corrected=corrected, ranking=ranking, retired=retired)
