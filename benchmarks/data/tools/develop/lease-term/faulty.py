"""The last day of a lease."""

from datetime import date, timedelta

from pydantic import BaseModel, Field

TOOL = {
    "name": "lease_term",
    "description": "Last day of a lease of some months (the day before the same day of the month, or before the month's last day where it has no such day), and the latest day for notice",
    "effects": ["pure"],
    "dependencies": [],
}


class Input(BaseModel):
    start: date
    months: int = Field(12, ge=1)
    notice_days: int = Field(30, ge=0)


class Output(BaseModel):
    last_day: date
    notice_by: date
    days: int


def add_months(day: date, months: int) -> date:
    years, month = divmod(day.month - 1 + months, 12)
    year, month = day.year + years, month + 1
    return day.replace(year=year, month=month)


def run(input: Input) -> Output:
    after = add_months(input.start, input.months)
    last = after - timedelta(days=1)
    return Output(
        last_day=last,
        notice_by=last - timedelta(days=input.notice_days),
        days=(after - input.start).days,
    )
