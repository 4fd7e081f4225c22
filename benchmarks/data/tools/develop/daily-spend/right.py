"""Expenses by day, from a journal with a heading for each day."""

from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "daily_spend",
    "description": "What was spent on each day",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="'== day' begins a day; then lines of the form: what amount")


class Output(BaseModel):
    days: dict[str, float]
    dearest: str


class Journal:
    """Collects the lines of one day after the other."""

    def __init__(self) -> None:
        self.days: dict[str, float] = {}
        self.day = ""
        self.spent = 0.0

    def begin(self, day: str) -> None:
        self.close()
        self.day = day
        self.spent = 0.0

    def add(self, amount: float) -> None:
        self.spent += amount

    def close(self) -> None:
        if self.day:
            self.days[self.day] = round(self.spent, 2)


def run(input: Input) -> Output:
    journal = Journal()
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if line.startswith("== "):
            journal.begin(line[3:].strip())
        elif line.strip():
            journal.add(float(line.rsplit(" ", 1)[1]))
    journal.close()
    dearest = max(journal.days, key=lambda day: journal.days[day], default="")
    return Output(days=journal.days, dearest=dearest)
