"""Postage of parcels."""

from typing import Literal

from pydantic import BaseModel, Field

TOOL = {
    "name": "shipping_tiers",
    "description": "Postage of parcels by weight class and zone; each class goes up to its weight and includes it",
    "effects": ["pure"],
    "dependencies": [],
}

CLASSES = [(1000, "S"), (2000, "M"), (5000, "L"), (10000, "XL")]
CENTS = {
    "home": {"S": 449, "M": 549, "L": 769, "XL": 1049},
    "near": {"S": 1399, "M": 1649, "L": 1849, "XL": 2349},
    "far": {"S": 2699, "M": 3199, "L": 4799, "XL": 6299},
}


class Input(BaseModel):
    grams: list[int] = Field(description="Weights of the parcels")
    zone: Literal["home", "near", "far"] = "home"


class Output(BaseModel):
    classes: list[str]
    cents: int
    refused: int


def class_of(grams: int) -> str | None:
    """None for what is heavier than the last class."""
    for most, name in CLASSES:
        if grams <= most:
            return name
    return None


def run(input: Input) -> Output:
    found = [class_of(grams) for grams in input.grams]
    taken = [name for name in found if name is not None]
    return Output(
        classes=[name or "-" for name in found],
        cents=sum(CENTS[input.zone][name] for name in taken),
        refused=len(found) - len(taken),
    )
