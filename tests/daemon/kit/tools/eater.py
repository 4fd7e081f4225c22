"""Eats memory."""

from pydantic import BaseModel

TOOL = {"name": "eater", "description": "Eats memory.", "effects": ["pure"], "dependencies": []}


class Input(BaseModel):
    n: int = 0


class Output(BaseModel):
    n: int


def run(input: Input) -> Output:
    held = []
    while True:
        held.append(bytearray(16 << 20))
