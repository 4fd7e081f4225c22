"""Hold totals by region against the whole ledger, in whole cents."""

import csv
import json
from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "check_totals",
    "description": "Regions whose total is not what the ledger says.",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    """Files of the workspace: the ledger as CSV, the totals as JSON by region."""

    ledger: str
    totals: str


class Output(BaseModel):
    """Regions that do not agree."""

    wrong: list[str]


def run(input: Input) -> Output:
    """Compare them."""
    cents: dict[str, int] = {}
    with open(input.ledger, newline="") as file:
        for row in csv.DictReader(file):
            amount = row["amount"].replace(",", "")
            cents[row["region"]] = cents.get(row["region"], 0) + round(float(amount) * 100)
    totals = json.loads(Path(input.totals).read_text())
    return Output(wrong=sorted(name for name in cents if round(totals.get(name, 0) * 100) != cents[name]))
