"""Too short rests between shifts."""

from datetime import datetime, timedelta
from itertools import pairwise

from pydantic import BaseModel, Field

TOOL = {
    "name": "rest_gaps",
    "description": "Hours between each shift (YYYY-MM-DD HH:MM-HH:MM, perhaps past midnight) and the next, and the starts of shifts before which the rest is too short",
    "effects": ["pure"],
    "dependencies": [],
}


class Input(BaseModel):
    shifts: list[str]
    least_hours: float = Field(11, gt=0)


class Output(BaseModel):
    rests: list[float]
    too_short: list[str]
    worked: float


def span(text: str) -> tuple[datetime, datetime]:
    """Begin and end of one shift."""
    day, hours = text.split()
    begin, end = (datetime.fromisoformat(f"{day} {clock}") for clock in hours.split("-"))
    if end <= begin:
        end += timedelta(days=1)
    return begin, end


def hours(length: timedelta) -> float:
    return round(length / timedelta(hours=1), 2)


def run(input: Input) -> Output:
    spans = sorted(span(text) for text in input.shifts)
    rests = []
    too_short = []
    for (_, end), (begin, _) in pairwise(spans):
        rests.append(hours(begin - end))
        if rests[-1] < input.least_hours:
            too_short.append(begin.strftime("%Y-%m-%d %H:%M"))
    worked = sum((end - begin for begin, end in spans), timedelta())
    return Output(rests=rests, too_short=too_short, worked=hours(worked))
