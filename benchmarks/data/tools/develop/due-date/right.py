"""Due dates of invoices: one that falls on a weekend or a holiday moves to the next working day."""

from datetime import date, timedelta

from pydantic import BaseModel, Field

TOOL = {
    "name": "due_date",
    "description": "When an invoice is due",
    "effects": ["pure"],
    "dependencies": [],
}

SATURDAY = 5


class Input(BaseModel):
    invoiced: date
    days: int = Field(14, ge=0)
    holidays: list[date] = []


class Output(BaseModel):
    due: date
    weekday: str
    moved: int = Field(description="Days by which it was moved")


def is_working_day(day: date, holidays: list[date]) -> bool:
    return day.weekday() < SATURDAY and day not in holidays


def run(input: Input) -> Output:
    nominal = input.invoiced + timedelta(days=input.days)
    due = nominal
    while not is_working_day(due, input.holidays):
        due += timedelta(days=1)
    return Output(due=due, weekday=due.strftime("%A"), moved=(due - nominal).days)
