"""Claims an outside effect."""

from pydantic import BaseModel

TOOL = {
    "name": "caller",
    "description": "Claims an outside effect.",
    "effects": ["external"],
    "dependencies": [],
}


class Input(BaseModel):
    n: int = 0


class Output(BaseModel):
    n: int


def run(input: Input) -> Output:
    return Output(n=1)
