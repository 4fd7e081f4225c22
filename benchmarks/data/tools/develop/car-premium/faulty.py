"""Premium of a car insurance in euros."""

from pydantic import BaseModel, Field

TOOL = {
    "name": "car_premium",
    "description": "Yearly premium of a car insurance",
    "effects": ["pure"],
    "dependencies": [],
}

BASE = 600.0
FLOOR_PERCENT = 30


class Input(BaseModel):
    age: int = Field(ge=17)
    power_kw: int = Field(gt=0)
    free_years: int = Field(0, ge=0, description="Years without an accident")
    garage: bool = False


class Output(BaseModel):
    premium: float
    percent: int
    notes: list[str]


def free_percent(years: int) -> int:
    """Seven points less for each year, but never under thirty percent."""
    return 100 - 7 * years


def surcharge(input: Input) -> tuple[float, list[str]]:
    factor, notes = 1.0, []
    if input.age < 25:
        factor *= 1.5
        notes.append("young driver")
    elif input.age > 70:
        factor *= 1.2
        notes.append("old driver")
    if input.power_kw > 100:
        factor *= 1.25
        notes.append("strong engine")
    return factor, notes


def run(input: Input) -> Output:
    percent = free_percent(input.free_years)
    factor, notes = surcharge(input)
    premium = BASE * factor * percent / 100
    if input.garage:
        premium -= 25
        notes.append("garage")
    return Output(premium=round(premium, 2), percent=percent, notes=notes)
