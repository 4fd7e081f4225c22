"""Carbon to nitrogen ratio of a compost heap."""

import csv
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "compost_ratio",
    "description": "Carbon to nitrogen of a compost heap, from the weights and the ratios of what goes onto it",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="CSV with material, kg, nitrogen (percent of the weight) and ratio (carbon to nitrogen)")
    low: float = 25.0
    high: float = 35.0


class Output(BaseModel):
    ratio: float
    advice: str


def run(input: Input) -> Output:
    """The carbon of a material is its nitrogen times its ratio."""
    carbon = nitrogen = 0.0
    with Path(input.path).open(newline="", encoding="utf-8") as handle:
        for row in csv.DictReader(handle):
            share = float(row["kg"]) * float(row["nitrogen"]) / 100
            nitrogen += share
            carbon += share * float(row["ratio"])
    ratio = round(carbon / nitrogen, 1) if nitrogen else 0.0
    if not nitrogen:
        advice = "empty"
    elif ratio < input.low:
        advice = "add brown"
    elif ratio > input.high:
        advice = "add green"
    else:
        advice = "good"
    return Output(ratio=ratio, advice=advice)
