"""Charged days of hired tools."""

from dataclasses import dataclass
from datetime import date
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "rental_days",
    "description": "Days that hired tools are charged for, the day of the return included",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="Lines of the form tool;from;to, where to may be 'open'")
    today: date = Field(description="Tools that are still out and were taken by then are charged to this day")


class Output(BaseModel):
    days: dict[str, int]
    out: list[str]


@dataclass
class Rental:
    tool: str
    start: date
    end: date | None

    def charged(self, today: date) -> int:
        if self.end is None:
            return max((today - self.start).days + 1, 0)
        return (self.end - self.start).days + 1


def rentals(text: str) -> list[Rental]:
    found = []
    for line in text.splitlines():
        if not line.strip():
            continue
        tool, start, end = (part.strip() for part in line.split(";"))
        found.append(Rental(tool, date.fromisoformat(start), None if end == "open" else date.fromisoformat(end)))
    return found


def run(input: Input) -> Output:
    days: dict[str, int] = {}
    out = []
    for rental in rentals(Path(input.path).read_text(encoding="utf-8")):
        days[rental.tool] = days.get(rental.tool, 0) + rental.charged(input.today)
        if rental.end is None:
            out.append(rental.tool)
    return Output(days=days, out=sorted(set(out)))
