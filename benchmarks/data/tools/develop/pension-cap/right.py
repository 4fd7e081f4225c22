"""Contributions up to a yearly ceiling."""

from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "pension_cap",
    "description": "The pension contributions of each person, a share of the pay until the pay of the year has reached a ceiling; what goes beyond it in the year is free",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str
    rate: float
    ceiling: float


class Output(BaseModel):
    contributions: list[str]
    total: dict[str, float]
    reached: list[str]


def run(input: Input) -> Output:
    """Lines: month (2026-03), person, pay, by month. Rate in per cent; those who reached the ceiling, with the month."""
    so_far: dict[tuple[str, str], float] = {}
    contributions = []
    total: dict[str, float] = {}
    reached = []
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if not line.strip():
            continue
        month, person, text = (cell.strip() for cell in line.split(","))
        pay = float(text)
        before = so_far.get((person, month[:4]), 0.0)
        counted = min(pay, max(input.ceiling - before, 0))
        so_far[person, month[:4]] = before + pay
        if before < input.ceiling <= before + pay:
            reached.append(f"{person} {month}")
        amount = round(counted * input.rate / 100, 2)
        contributions.append(f"{month} {person} {amount:.2f}")
        total[person] = round(total.get(person, 0.0) + amount, 2)
    return Output(contributions=contributions, total=total, reached=reached)
