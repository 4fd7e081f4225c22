"""Revenue by fiscal quarter."""

from datetime import date
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "fiscal_quarter",
    "description": "Sums by fiscal quarter; a fiscal year has the name of the calendar year in which it begins",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str
    first_month: int = Field(1, ge=1, le=12)


class Output(BaseModel):
    quarters: dict[str, int]
    best: str | None


def quarter(day: date, first_month: int) -> str:
    year = day.year
    if day.month < first_month:
        year -= 1
    months = (day.month - first_month) % 12
    return f"FY{year} Q{months // 3 + 1}"


def run(input: Input) -> Output:
    sums: dict[str, int] = {}
    lines = Path(input.path).read_text(encoding="utf-8").splitlines()
    for line in lines:
        if not line.strip():
            continue
        day, amount = line.split()
        name = quarter(date.fromisoformat(day), input.first_month)
        sums[name] = sums.get(name, 0) + int(amount)
    best = max(sorted(sums), key=lambda name: sums[name], default=None)
    return Output(quarters=dict(sorted(sums.items())), best=best)
