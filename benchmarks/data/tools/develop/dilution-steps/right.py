"""A series of dilutions."""

from pydantic import BaseModel, Field

TOOL = {
    "name": "dilution_steps",
    "description": "Serial dilution: each step dilutes the one before by a factor to the same volume; concentration in mg/l, and ml to take over and ml of water to add for each step",
    "effects": ["pure"],
    "dependencies": [],
}


class Input(BaseModel):
    stock: float = Field(gt=0)
    factors: list[float]
    volume_ml: float = Field(gt=0)


class Step(BaseModel):
    concentration: float
    take_ml: float
    water_ml: float


class Output(BaseModel):
    steps: list[Step]
    total_factor: float
    water_ml: float


def run(input: Input) -> Output:
    steps = []
    concentration = input.stock
    total = 1.0
    for factor in input.factors:
        if factor < 1:
            raise ValueError(f"a factor below 1 is no dilution: {factor}")
        total *= factor
        concentration = input.stock / total
        take = input.volume_ml / factor
        steps.append(
            Step(
                concentration=round(concentration, 6),
                take_ml=round(take, 3),
                water_ml=round(input.volume_ml - take, 3),
            )
        )
    water = sum(step.water_ml for step in steps)
    return Output(steps=steps, total_factor=total, water_ml=round(water, 3))
