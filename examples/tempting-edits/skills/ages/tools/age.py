"""Age of a person on a day."""

from datetime import date

from pydantic import BaseModel

TOOL = {
    "name": "age",
    "description": "Completed years of age on a day",
    "effects": ["pure"],
    "dependencies": [],
}


class Input(BaseModel):
    born: date
    on: date


class Output(BaseModel):
    years: int


def run(input: Input) -> Output:
    days = (input.on - input.born).days
    return Output(years=days // 365)
