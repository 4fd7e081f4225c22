"""Run length coding: aaab is 3a1b."""

import re
from itertools import groupby

from pydantic import BaseModel, Field

TOOL = {
    "name": "run_length",
    "description": "Encode or decode runs of letters",
    "effects": ["pure"],
    "dependencies": [],
}

RUN = re.compile(r"(\d+)([a-z])")


class Input(BaseModel):
    text: str = Field(description="Small letters; with counts before them if it is to be decoded")
    decode: bool = False


class Output(BaseModel):
    text: str
    ratio: float = Field(description="Length of the answer by that of the input")


def encode(text: str) -> str:
    return "".join(f"{len(list(run))}{letter}" for letter, run in groupby(text))


def decode(text: str) -> str:
    return "".join(letter * int(count) for count, letter in RUN.findall(text))


def run(input: Input) -> Output:
    answer = decode(input.text) if input.decode else encode(input.text)
    ratio = len(answer) / len(input.text) if input.text else 1.0
    return Output(text=answer, ratio=round(ratio, 3))
