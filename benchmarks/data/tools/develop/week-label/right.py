"""Labels of ISO weeks."""

from collections import Counter
from datetime import date, timedelta

from pydantic import BaseModel

TOOL = {
    "name": "week_label",
    "description": "ISO week labels of dates (2026-W01; a week belongs to the year that holds its Thursday), how often each occurs, and the first date's week as a span from Monday to Sunday",
    "effects": ["pure"],
    "dependencies": [],
}


class Input(BaseModel):
    dates: list[date]


class Output(BaseModel):
    weeks: dict[str, int]
    span: list[date]


def label(day: date) -> str:
    year, week, _ = day.isocalendar()
    return f"{year}-W{week:02d}"


def run(input: Input) -> Output:
    weeks = Counter(label(day) for day in input.dates)
    span = []
    if input.dates:
        monday = input.dates[0] - timedelta(days=input.dates[0].weekday())
        span = [monday, monday + timedelta(days=6)]
    return Output(weeks=dict(sorted(weeks.items())), span=span)
