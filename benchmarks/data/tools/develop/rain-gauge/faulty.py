"""Months of a rain gauge."""

import csv

from pydantic import BaseModel, Field

TOOL = {
    "name": "rain_gauge",
    "description": "Rain by month, wet days and days with a trace (T); days without a reading are counted apart",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str
    wet_mm: float = Field(1.0, description="a day with this much or more is wet")


class Output(BaseModel):
    months: dict[str, float]
    wet_days: int
    trace_days: int
    unread: int


def run(input: Input) -> Output:
    months: dict[str, float] = {}
    wet = trace = unread = 0
    with open(input.path, newline="", encoding="utf-8") as handle:
        for row in csv.DictReader(handle):
            month, reading = row["date"][:7], row["mm"].strip()
            if not reading:
                unread += 1
                continue
            amount = float(reading)
            months[month] = months.get(month, 0.0) + amount
            if amount >= input.wet_mm:
                wet += 1
    return Output(
        months={month: round(total, 1) for month, total in sorted(months.items())},
        wet_days=wet,
        trace_days=trace,
        unread=unread,
    )
