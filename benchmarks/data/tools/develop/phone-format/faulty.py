"""Brings phone numbers into the form +49301234567."""

import re

from pydantic import BaseModel, Field

TOOL = {
    "name": "phone_format",
    "description": "Phone numbers in the international form",
    "effects": ["pure"],
    "dependencies": [],
}


class Input(BaseModel):
    numbers: list[str]
    country: str = Field("49", description="For numbers that name no country (they begin with one 0)")


class Output(BaseModel):
    numbers: list[str]
    foreign: int


def normal(number: str, country: str) -> str:
    text = re.sub(r"[^\d+]", "", number)
    if text.startswith("+"):
        return text
    if text.startswith("0"):
        return "+" + country + text[1:]
    raise ValueError(f"{number!r} is no full number")


def run(input: Input) -> Output:
    numbers = [normal(number, input.country) for number in input.numbers]
    own = "+" + input.country
    return Output(numbers=numbers, foreign=sum(not number.startswith(own) for number in numbers))
