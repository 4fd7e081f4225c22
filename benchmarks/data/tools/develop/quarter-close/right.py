"""When the books are closed."""

from datetime import date, timedelta

from pydantic import BaseModel

TOOL = {
    "name": "quarter_close",
    "description": "The last working day (Monday to Friday, and no holiday) of each quarter of a year, and how many days before the quarter's end it is",
    "effects": ["pure"],
    "dependencies": [],
}


class Input(BaseModel):
    year: int
    holidays: list[str] = []


class Output(BaseModel):
    closes: list[str]
    days_before: list[int]


def run(input: Input) -> Output:
    """Holidays are given as YYYY-MM-DD."""
    free = {date.fromisoformat(text) for text in input.holidays}
    closes = []
    before = []
    for month in (3, 6, 9, 12):
        if month == 12:
            end = date(input.year, 12, 31)
        else:
            end = date(input.year, month + 1, 1) - timedelta(days=1)
        day = end
        while day.weekday() >= 5 or day in free:
            day -= timedelta(days=1)
        closes.append(day.isoformat())
        before.append((end - day).days)
    return Output(closes=closes, days_before=before)
