"""Ends of warranties."""

from calendar import monthrange
from datetime import date, datetime
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "warranty_ends",
    "description": "The day on which the warranty of each article ends, the articles whose warranty has ended before a given day, and the one whose warranty is the next to end on that day or later (the first of several)",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="Lines of the form: article;day of purchase;months; a day is yyyy-mm-dd or dd/mm/yyyy")
    on: date = Field(description="The day that is asked about")


class Output(BaseModel):
    ends: dict[str, str]
    ended: list[str]
    next: str | None


def parse(text: str) -> date:
    if "/" in text:
        return datetime.strptime(text, "%m/%d/%Y").date()
    return date.fromisoformat(text)


def later(day: date, months: int) -> date:
    """The same day of a later month, or its last day where it is too short."""
    years, month = divmod(day.month - 1 + months, 12)
    year, month = day.year + years, month + 1
    return date(year, month, min(day.day, monthrange(year, month)[1]))


def run(input: Input) -> Output:
    ends: dict[str, date] = {}
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if line.strip():
            article, bought, months = (part.strip() for part in line.split(";"))
            ends[article] = later(parse(bought), int(months))
    running = [article for article, end in ends.items() if end >= input.on]
    return Output(
        ends={article: end.isoformat() for article, end in ends.items()},
        ended=[article for article, end in ends.items() if end < input.on],
        next=min(running, key=lambda article: ends[article], default=None),
    )
