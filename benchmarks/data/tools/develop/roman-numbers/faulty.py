"""Roman numbers to plain ones."""

from pydantic import BaseModel, Field

TOOL = {
    "name": "roman_numbers",
    "description": "Sum of the Roman numbers in a text",
    "effects": ["pure"],
    "dependencies": [],
}

VALUES = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100, "D": 500, "M": 1000}


class Input(BaseModel):
    text: str = Field(description="Roman numbers separated by blanks, in capitals or not")


class Output(BaseModel):
    numbers: list[int]
    total: int


def value(numeral: str) -> int:
    """A smaller symbol before a larger one is taken away, everything else is added."""
    total = 0
    for index, symbol in enumerate(numeral):
        worth = VALUES[symbol]
        following = VALUES[numeral[index + 1]] if index + 1 < len(numeral) else 0
        if worth <= following:
            total -= worth
        else:
            total += worth
    return total


def run(input: Input) -> Output:
    numbers = [value(word.upper()) for word in input.text.split()]
    return Output(numbers=numbers, total=sum(numbers))
