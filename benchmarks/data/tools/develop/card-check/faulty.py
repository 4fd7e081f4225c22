"""Checks the numbers of customer cards by the Luhn formula."""

from pydantic import BaseModel, Field

TOOL = {
    "name": "card_check",
    "description": "Card numbers whose check digit is right",
    "effects": ["pure"],
    "dependencies": [],
}


class Input(BaseModel):
    numbers: list[str] = Field(description="Digits, perhaps with blanks between them")


class Output(BaseModel):
    good: list[str]
    bad: list[str]
    masked: list[str]


def checksum(digits: str) -> int:
    """Every second digit from the right is doubled, and nine taken off where that exceeds nine."""
    total = 0
    for position, digit in enumerate(reversed(digits)):
        value = int(digit)
        if position % 2 == 1:
            value *= 2
        total += value
    return total


def run(input: Input) -> Output:
    good, bad, masked = [], [], []
    for number in input.numbers:
        digits = number.replace(" ", "")
        (good if checksum(digits) % 10 == 0 else bad).append(digits)
        masked.append("*" * (len(digits) - 4) + digits[-4:])
    return Output(good=good, bad=bad, masked=masked)
