"""A large answer."""

from pydantic import BaseModel

TOOL = {"name": "big", "description": "A large answer.", "effects": ["pure"], "dependencies": []}


class Input(BaseModel):
    n: int = 0


class Output(BaseModel):
    n: int


def run(input: Input) -> Output:
    return Output(n=10**input.n)
