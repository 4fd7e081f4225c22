"""Postage of a parcel by its weight."""

from pydantic import BaseModel, Field

TOOL = {
    "name": "postage",
    "description": "Postage of a parcel in cents",
    "effects": ["pure"],
    "dependencies": [],
}

STEPS = [(500, 385), (1000, 549), (2000, 799)]


class Input(BaseModel):
    grams: int = Field(gt=0)


class Output(BaseModel):
    cents: int


def run(input: Input) -> Output:
    """The price of the first step that the weight fits; beyond two kilograms 120 for each begun kilogram."""
    for limit, price in STEPS:
        if input.grams <= limit:
            return Output(cents=price)
    cents = STEPS[-1][1]
    return Output(cents=cents)
