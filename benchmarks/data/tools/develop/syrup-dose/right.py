"""Dose of a syrup by body weight."""

from pydantic import BaseModel, Field

TOOL = {
    "name": "syrup_dose",
    "description": "Millilitres of a syrup for a patient",
    "effects": ["pure"],
    "dependencies": [],
}

DAILY_MAXIMUM_MG = 2000


class Input(BaseModel):
    weight_kg: float = Field(gt=0)
    mg_per_kg: float = Field(gt=0, description="Single dose")
    times_per_day: int = Field(gt=0)
    mg_per_ml: float = Field(gt=0, description="Strength of the syrup")


class Output(BaseModel):
    single_ml: float
    daily_mg: float
    capped: bool


def single_dose(input: Input) -> tuple[float, bool]:
    """Milligrams of one dose; lowered so that the whole day stays within the maximum."""
    dose = input.weight_kg * input.mg_per_kg
    limit = DAILY_MAXIMUM_MG / input.times_per_day
    if dose > limit:
        return limit, True
    return dose, False


def run(input: Input) -> Output:
    dose, capped = single_dose(input)
    return Output(
        single_ml=round(dose / input.mg_per_ml, 1),
        daily_mg=round(dose * input.times_per_day, 1),
        capped=capped,
    )
