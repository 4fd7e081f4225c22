"""Luggage fees."""

import json
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "luggage_fee",
    "description": "What passengers of a bus line pay for their luggage",
    "effects": ["read"],
    "dependencies": [],
}

PIECE = 8.0
HEAVY = 23.0
PER_KG = 1.5


class Input(BaseModel):
    path: str = Field(description="JSON: the weights in kg of each passenger's pieces")
    free: int = Field(1, description="Pieces that cost nothing; the lightest ones are the free ones")


class Output(BaseModel):
    fees: dict[str, float]
    refused: list[str] = Field(description="Passengers with a piece of more than 32 kg")


def fee(weights: list[float], free: int) -> float:
    """A price for each piece, and more for each kg above the limit."""
    paid = sorted(weights)[free:]
    return sum(PIECE + max(0.0, weight - HEAVY) * PER_KG for weight in paid)


def run(input: Input) -> Output:
    bookings = json.loads(Path(input.path).read_text(encoding="utf-8"))
    fees: dict[str, float] = {}
    refused = []
    for passenger, weights in bookings.items():
        if any(weight > 32 for weight in weights):
            refused.append(passenger)
            continue
        fees[passenger] = round(fee(weights, input.free), 2)
    return Output(fees=fees, refused=sorted(refused))
