"""Heating degree days."""

from pydantic import BaseModel, Field

TOOL = {
    "name": "degree_days",
    "description": "Heating degree days by month from lowest and highest temperatures, days of heating, and the oil they need",
    "effects": ["pure"],
    "dependencies": [],
}


class Input(BaseModel):
    days: dict[str, tuple[float, float]] = Field(description="by ISO date: lowest and highest of the day")
    base: float = 18
    litres_per_degree_day: float = 0.3


class Output(BaseModel):
    months: dict[str, float]
    heating_days: int
    litres: float
    coldest: str | None


def run(input: Input) -> Output:
    months: dict[str, float] = {}
    heating_days = 0
    means: dict[str, float] = {}
    for day, (low, high) in input.days.items():
        mean = (low + high) / 2
        means[day] = mean
        missing = max(input.base - mean, 0)
        if missing > 0:
            heating_days += 1
        months[day[:7]] = months.get(day[:7], 0) + missing
    total = sum(months.values())
    return Output(
        months={month: round(value, 1) for month, value in months.items()},
        heating_days=heating_days,
        litres=round(total * input.litres_per_degree_day, 1),
        coldest=min(means, key=lambda day: (means[day], day), default=None),
    )
