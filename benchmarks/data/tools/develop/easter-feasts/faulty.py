"""Feasts that move with Easter."""

from datetime import date, timedelta

from pydantic import BaseModel, Field

TOOL = {
    "name": "easter_feasts",
    "description": "The feasts of given years that move with Easter",
    "effects": ["pure"],
    "dependencies": [],
}

FEASTS = {"Ash Wednesday": -46, "Good Friday": -2, "Easter": 0, "Ascension": 39, "Whit Monday": 50, "Corpus Christi": 60}


class Input(BaseModel):
    years: list[int] = Field(description="From 1583 on")
    feast: str = "Easter"


class Output(BaseModel):
    dates: dict[str, str]


def easter(year: int) -> date:
    """Gauss's rule: with the exceptions of the 26th and the 25th of April."""
    century = year // 100
    moon = 15 + (3 * century + 3) // 4 - (8 * century + 13) // 25
    sun = 2 - (3 * century + 3) // 4
    cycle = year % 19
    seed = (19 * cycle + moon) % 30
    border = 21 + seed
    first = 7 - (year + year // 4 + sun) % 7
    offset = 7 - (border - first) % 7
    return date(year, 3, 1) + timedelta(days=border + offset - 1)


def run(input: Input) -> Output:
    if input.feast not in FEASTS:
        raise ValueError(f"unknown feast {input.feast!r}")
    dates = {}
    for year in input.years:
        day = easter(year) + timedelta(days=FEASTS[input.feast])
        dates[str(year)] = day.isoformat()
    return Output(dates=dates)
