"""Gross pay from a time sheet."""

from collections import defaultdict
from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "payslip_hours",
    "description": "The gross pay of each person from a time sheet; in each week the hours beyond the full week are paid one and a half times",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str
    rate: float
    full: float = 40


class Output(BaseModel):
    pay: dict[str, float]
    overtime: dict[str, float]


def run(input: Input) -> Output:
    """Lines: week, person, day, hours. Pay to the cent."""
    weeks: dict[tuple[str, str], float] = defaultdict(float)
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if not line.strip():
            continue
        week, person, _, hours = (cell.strip() for cell in line.split(","))
        weeks[person, week] += float(hours)
    pay: dict[str, float] = defaultdict(float)
    overtime: dict[str, float] = defaultdict(float)
    for (person, _), hours in weeks.items():
        extra = max(hours - input.full, 0)
        overtime[person] += extra
        pay[person] += (hours + extra / 2) * input.rate
    return Output(
        pay={person: round(sum_, 2) for person, sum_ in sorted(pay.items())},
        overtime={person: hours for person, hours in sorted(overtime.items()) if hours},
    )
