"""Mixtures of acids."""

from pydantic import BaseModel, Field

TOOL = {
    "name": "ph_mix",
    "description": "The pH (two decimals) of a mixture of strong acids: minus the decimal logarithm of the concentration of hydrogen ions, which is the mean of the parts' 10 to the power of -pH by their volumes; and the volume, and the part (from 1) that gives most of the ions",
    "effects": ["pure"],
    "dependencies": [],
}


class Part(BaseModel):
    ph: float = Field(ge=0, le=7)
    ml: float = Field(gt=0)


class Input(BaseModel):
    parts: list[Part] = Field(min_length=1)


class Output(BaseModel):
    ph: float
    ml: float
    strongest: int


def mixed(parts: list[Part]) -> float:
    volume = sum(part.ml for part in parts)
    return sum(part.ml * part.ph for part in parts) / volume


def run(input: Input) -> Output:
    ions = [part.ml * 10**-part.ph for part in input.parts]
    return Output(
        ph=round(mixed(input.parts), 2),
        ml=round(sum(part.ml for part in input.parts), 1),
        strongest=ions.index(max(ions)) + 1,
    )
