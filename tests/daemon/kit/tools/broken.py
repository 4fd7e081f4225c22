"""Always raises."""

from pydantic import BaseModel

TOOL = {"name": "broken", "description": "Always raises.", "effects": ["pure"], "dependencies": []}


class Input(BaseModel):
    n: int = 0


class Output(BaseModel):
    n: int


def run(input: Input) -> Output:
    return Output(n=[1, 2][input.n + 5])
