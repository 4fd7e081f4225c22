"""Keeps the balance of hours worked."""

from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "overtime_balance",
    "description": "By how much the time worked on each day differs from what is due, as hours and minutes with a minus sign where it is less (-1:30), the balance of all days, and the lowest that the balance has been",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="Lines of the form: YYYY-MM-DD H:MM")
    target: str = Field("8:00", description="What is due on each day")


class Output(BaseModel):
    days: dict[str, str]
    balance: str
    lowest: str


def minutes(text: str) -> int:
    hours, _, rest = text.partition(":")
    return int(hours) * 60 + int(rest)


def shown(time: int) -> str:
    """Minutes as hours and minutes."""
    return f"{time // 60}:{time % 60:02d}"


def run(input: Input) -> Output:
    """The balance begins with nothing."""
    target = minutes(input.target)
    days = {}
    balance = lowest = 0
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if not line.strip():
            continue
        day, worked = line.split()
        difference = minutes(worked) - target
        days[day] = shown(difference)
        balance += difference
        lowest = min(lowest, balance)
    return Output(days=days, balance=shown(balance), lowest=shown(lowest))
