"""Bill of phone calls between countries."""

import csv
from datetime import datetime
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "call_bill",
    "description": "Minutes and price of phone calls",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="CSV: start,end as ISO times with their offset from UTC")
    cent_per_minute: int = 9


class Output(BaseModel):
    minutes: list[int]
    cents: int


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text.strip())


def minutes(start: datetime, end: datetime) -> int:
    """Begun minutes."""
    seconds = int((end - start).total_seconds())
    return -(-seconds // 60)


def run(input: Input) -> Output:
    with Path(input.path).open(newline="", encoding="utf-8") as handle:
        lengths = [minutes(moment(row["start"]), moment(row["end"])) for row in csv.DictReader(handle)]
    return Output(minutes=lengths, cents=sum(lengths) * input.cent_per_minute)
