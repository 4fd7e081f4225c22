"""The days on which books are closed."""

from datetime import date, timedelta
from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "month_cutoff",
    "description": "The last working day of each of some months in a row, on which the books are closed (Monday to Friday, and no holiday of a list), and in how many of them it is not the last day of the month",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str
    first: str
    months: int


class Output(BaseModel):
    days: list[date]
    early: int
    between: list[int]


def run(input: Input) -> Output:
    """The file has one holiday on each line. ``between`` tells the days from each cutoff to the next."""
    holidays = {date.fromisoformat(line.strip()) for line in Path(input.path).read_text().splitlines() if line.strip()}
    year, month = (int(part) for part in input.first.split("-"))
    days: list[date] = []
    early = 0
    for _ in range(input.months):
        end = date(year, month + 1, 1) - timedelta(days=1)
        day = end
        while day.weekday() > 4 or day in holidays:
            day -= timedelta(days=1)
        days.append(day)
        early += day != end
        month += 1
        if month > 12:
            year, month = year + 1, 1
    return Output(
        days=days,
        early=early,
        between=[(later - former).days for former, later in zip(days, days[1:], strict=False)],
    )
