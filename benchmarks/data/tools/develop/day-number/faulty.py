"""The number of a day within its year, for old registers with dates such as 1900-03-01."""

from pydantic import BaseModel, Field

TOOL = {
    "name": "day_number",
    "description": "Number of the day within its year",
    "effects": ["pure"],
    "dependencies": [],
}

LENGTHS = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]


class Input(BaseModel):
    dates: list[str] = Field(description="Gregorian dates, YYYY-MM-DD")


class Output(BaseModel):
    days: list[int]
    left: list[int] = Field(description="Days that are left in the year after that day")


def is_leap(year: int) -> bool:
    return year % 4 == 0


def run(input: Input) -> Output:
    days, left = [], []
    for text in input.dates:
        year, month, day = (int(part) for part in text.split("-"))
        number = sum(LENGTHS[: month - 1]) + day
        if is_leap(year) and month > 2:
            number += 1
        days.append(number)
        left.append((366 if is_leap(year) else 365) - number)
    return Output(days=days, left=left)
