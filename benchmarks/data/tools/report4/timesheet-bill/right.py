"""Bill of a time sheet."""

import csv
import math
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "timesheet_bill",
    "description": "Hours and fees of clients; the minutes of a client are added up "
    "and then rounded up to quarters of an hour",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="CSV with the columns client and minutes")
    rate: float = Field(description="for an hour")


class Fee(BaseModel):
    client: str
    hours: float
    fee: float


class Output(BaseModel):
    fees: list[Fee]
    total: float


def quarters(minutes: int) -> int:
    return math.ceil(minutes / 15)


def run(input: Input) -> Output:
    worked: dict[str, int] = {}
    with Path(input.path).open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            worked[row["client"]] = worked.get(row["client"], 0) + int(row["minutes"])
    fees = []
    for client, minutes in sorted(worked.items()):
        hours = quarters(minutes) / 4
        fees.append(Fee(client=client, hours=hours, fee=round(hours * input.rate, 2)))
    return Output(fees=fees, total=round(sum(fee.fee for fee in fees), 2))
