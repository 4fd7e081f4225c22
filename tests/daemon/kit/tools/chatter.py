"""Prints without end."""

from pydantic import BaseModel

TOOL = {"name": "chatter", "description": "Prints without end.", "effects": ["pure"], "dependencies": []}


class Input(BaseModel):
    n: int = 0


class Output(BaseModel):
    n: int


def run(input: Input) -> Output:
    while True:
        print("x" * 4000)
