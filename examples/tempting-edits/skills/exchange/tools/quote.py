"""What foreign money costs today."""

from _money import cents
from pydantic import BaseModel, Field

from agentos.worker.egress import fetch

TOOL = {
    "name": "quote",
    "description": "Price of an amount of foreign money, at the bank's rate of today",
    "effects": ["external"],
    "dependencies": [],
}


class Input(BaseModel):
    bank: str = Field(description="Address of the bank's service")
    currency: str
    amount: int


class Output(BaseModel):
    cents: int


def run(input: Input) -> Output:
    rate = fetch(f"{input.bank}/{input.currency}").text  # such as 1.05
    return Output(cents=cents(rate) * input.amount)
