"""Checks ISBN numbers of ten or thirteen digits."""

from pydantic import BaseModel, Field

TOOL = {
    "name": "isbn_check",
    "description": "Valid ISBN numbers of a list",
    "effects": ["pure"],
    "dependencies": [],
}


class Input(BaseModel):
    codes: list[str] = Field(description="With or without hyphens; the last of ten may be X for 10")


class Output(BaseModel):
    valid: list[str]
    invalid: list[str]


def digits(code: str) -> list[int]:
    plain = code.replace("-", "")
    return [int(c) for c in plain]


def is_valid(code: str) -> bool:
    numbers = digits(code)
    if len(numbers) == 10:
        return sum((10 - index) * n for index, n in enumerate(numbers)) % 11 == 0
    if len(numbers) == 13:
        return sum((3 if index % 2 else 1) * n for index, n in enumerate(numbers)) % 10 == 0
    return False


def run(input: Input) -> Output:
    valid, invalid = [], []
    for code in input.codes:
        (valid if is_valid(code) else invalid).append(code)
    return Output(valid=valid, invalid=invalid)
