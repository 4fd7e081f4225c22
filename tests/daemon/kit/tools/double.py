"""Twice the number."""

from pydantic import BaseModel

TOOL = {"name": "double", "description": "Twice the number.", "effects": ["pure"], "dependencies": []}


class Input(BaseModel):
    n: int = 0


class Output(BaseModel):
    n: int


def run(input: Input) -> Output:
    return Output(n=input.n * 2)
